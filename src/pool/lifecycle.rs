//! Start and stop.
//!
//! Stopping: 1. set the flag; from here no new login begins and no worker takes new work.
//! 2. Reject the channels that wait. 3. Wake the warden and join it: nobody starts threads now.
//! 4. Wake every worker and login thread; each ends when its present job is done. 5. Join them.
//! 6. Close the sessions that are left (a server has killed them all before, so there are none).

use super::{Platform, Pool};
use crate::driver;
use crate::group::{Group, GroupId};
use crate::host::{CloseReason, LogLevel, RejectReason, Role, ThreadBody};
use crate::login::Login;
use crate::stats::Member;
use crate::sync::Ordering;
use crate::worker::WorkerShared;
use std::sync::Arc;

/// A permanent thread couldn't be started.
#[derive(Debug, PartialEq, Eq)]
pub struct StartError;

impl Pool {
    /// Starts the permanent threads: the warden, one login thread and one worker for each group.
    pub fn start(self: &Arc<Self>) -> Result<(), StartError> {
        let started = self.permanent_threads().into_iter().all(|(role, group)| {
            self.count_new_thread(role, group);
            self.spawn(role, group)
        });
        if started {
            return Ok(());
        }
        let text = "The operating system refused one of the thread pool's permanent threads. \
                    Raise the limits on processes and memory.";
        self.host.log(LogLevel::Error, text);
        self.shutdown();
        Err(StartError)
    }

    pub(crate) fn permanent_threads(&self) -> Vec<(Role, GroupId)> {
        let workers = self.groups.iter().map(|group| (Role::Worker, group.id));
        [(Role::Warden, 0), (Role::Login, 0)].into_iter().chain(workers).collect()
    }

    /// Counts a thread that is about to be started.
    pub(crate) fn count_new_thread(&self, role: Role, group: GroupId) {
        match role {
            Role::Warden => {}
            Role::Login => {
                self.logins.threads.fetch_add(1, Ordering::SeqCst);
            }
            Role::Worker => {
                let Group { counters, stats, is_admin, .. } = self.group(group);
                let before = counters.workers.fetch_add(1, Ordering::SeqCst);
                stats.thread_starts(before + 1, self.clock.now());
                counters.starting.fetch_add(1, Ordering::SeqCst);
                self.workers.fetch_add(u32::from(!is_admin), Ordering::SeqCst);
            }
        }
    }

    /// Takes a worker out of the count: it ends, or it couldn't be started.
    pub(crate) fn uncount_worker(&self, group: &Group) {
        group.counters.workers.fetch_sub(1, Ordering::SeqCst);
        self.workers.fetch_sub(u32::from(!group.is_admin), Ordering::SeqCst);
    }

    /// Starts a thread that its counters count already; false if the host refused.
    pub(crate) fn spawn(self: &Arc<Self>, role: Role, group: GroupId) -> bool {
        let id = self.threads.new_id();
        let pool = Arc::clone(self);
        let parker = self.platform.parker();
        let body: ThreadBody = match role {
            Role::Worker => {
                let shared = Arc::new(WorkerShared::new(group, parker));
                let entry = self.registry.enter(Member::Worker(Arc::clone(&shared)));
                Box::new(move || driver::run_worker(&pool, id, &shared, entry))
            }
            Role::Login => {
                let login = Login::new(Arc::clone(self), parker);
                let entry = self.registry.enter(Member::Login(Arc::clone(login.stats())));
                Box::new(move || driver::run_login(&pool, id, login, entry))
            }
            Role::Warden => Box::new(move || driver::run_warden(&pool)),
        };
        let Some(thread) = self.host.thread_spawn(role, body) else { return false };
        if role == Role::Warden {
            *self.warden_thread.lock() = Some(thread);
        } else {
            self.threads.add(id, thread);
        }
        true
    }

    /// Stops all threads and waits for them. Idempotent.
    pub fn shutdown(&self) {
        self.announce_stop();
        let warden = self.warden_thread.lock().take();
        if let Some(thread) = warden {
            self.host.thread_join(thread);
        }
        self.wake_all();
        for thread in self.threads.take_all() {
            self.host.thread_join(thread);
        }
        self.close_remaining();
    }

    /// Steps 1 to 3 but for the joining.
    pub(crate) fn announce_stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for channel in self.logins.close() {
            self.host.channel_reject(channel, RejectReason::Shutdown);
        }
        self.warden.kick();
    }

    /// Step 4, when the warden has ended.
    pub(crate) fn wake_all(&self) {
        self.threads.for_each_worker(|worker| worker.parker.unpark());
        self.groups.iter().for_each(|group| group.poller.notify());
    }

    /// Step 6, when all threads have ended.
    pub(crate) fn close_remaining(&self) {
        self.connections.drain(|session| {
            self.host.session_close(session, CloseReason::Ended);
        });
    }
}

/// The operating system under a production pool.
#[derive(Default)]
pub struct SystemPlatform {
    clock: Arc<crate::time::SystemClock>,
}

impl Platform for SystemPlatform {
    fn poller(&self, _group: GroupId) -> std::io::Result<Box<dyn crate::poll::Poller>> {
        Ok(Box::new(crate::poll::Epoll::new()?))
    }

    fn parker(&self) -> Arc<dyn crate::sync::Park> {
        Arc::new(crate::sync::Parker::default())
    }

    fn probe(&self) -> Option<Box<dyn crate::sync::Probe>> {
        let probe = crate::sync::ThreadProbe::of_this_thread()?;
        Some(Box::new(probe))
    }

    fn processor(&self) -> u32 {
        // SAFETY: no arguments. It fails only on kernels without the call; −1 is a number as good
        // as any other then, since all threads have it.
        unsafe { libc::sched_getcpu() as u32 }
    }

    fn clock(&self) -> Arc<dyn crate::time::Clock> {
        Arc::clone(&self.clock) as Arc<dyn crate::time::Clock>
    }
}
