//! Simulated threads: do what the step machines want, in simulated time.

use super::kernel::ThreadId;
use super::server::{Command, Message};
use super::{Event, Simulation};
use crate::conn::{Owned, Token};
use crate::driver;
use crate::group::GroupId;
use crate::host::{Armed, CloseReason, Role};
use crate::login::{self, Login};
use crate::stats::WaitKind;
use crate::sync::Park;
use crate::time::{Micros, Moment};
use crate::warden::{self, Warden};
use crate::worker::{self, Worker, WorkerShared};
use rand::RngExt;
use std::sync::Arc;

/// A thread and what it does at present.
pub(super) struct SimThread {
    parker: usize,
    /// Changes whenever the thread moves on, so that events for its former state are ignored.
    epoch: u64,
    /// It will look for work by itself: it neither sleeps nor executes a statement.
    is_awake: bool,
    /// When its present sleep ends by itself.
    wakes_at: Moment,
    machine: Machine,
}

enum Machine {
    Worker(Box<Worker>, Arc<WorkerShared>, WorkerState),
    Login(Box<Login>, LoginState),
    Warden(Box<Warden>, WardenState),
    Ended,
}

enum WorkerState {
    Ready(worker::Done),
    Polling(usize),
    Parked,
    Awaiting(Owned),
    Executing(Owned, Message, Stage),
    /// Between two states; never seen by an event.
    Moving,
}

/// Where a statement stands.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Working,
    Waiting,
}

enum LoginState {
    Ready(login::Done),
    Parked,
    LoggingIn(crate::host::Channel, bool),
    Moving,
}

enum WardenState {
    Ready(warden::Done),
    Parked,
    Moving,
}

impl SimThread {
    /// The worker's shared part, unless the thread is another kind or has ended.
    pub(super) fn worker(&self) -> Option<&Arc<WorkerShared>> {
        match &self.machine {
            Machine::Worker(_, shared, _) => Some(shared),
            _ => None,
        }
    }

    /// The statement that a worker executes, and whose it is.
    pub(super) fn statement_in_execution(&self) -> Option<(&Owned, Command)> {
        match &self.machine {
            Machine::Worker(_, _, WorkerState::Executing(owned, message, _)) => {
                Some((owned, message.command))
            }
            _ => None,
        }
    }

    /// The connection that the thread owns.
    pub(super) fn owned(&self) -> Option<&Owned> {
        use worker::Done;
        match &self.machine {
            Machine::Worker(_, _, state) => match state {
                WorkerState::Ready(
                    Done::Executed(owned, _)
                    | Done::Awaited(owned, _)
                    | Done::Detached(owned)
                    | Done::NotRested(owned, _),
                ) => Some(owned),
                WorkerState::Awaiting(owned) | WorkerState::Executing(owned, ..) => Some(owned),
                _ => None,
            },
            Machine::Login(_, LoginState::Ready(login::Done::NotArmed(owned, _))) => Some(owned),
            _ => None,
        }
    }

    /// Events that the thread has collected and not looked at yet.
    pub(super) fn events(&self) -> &[Token] {
        match &self.machine {
            Machine::Worker(worker, _, WorkerState::Ready(worker::Done::Polled)) => {
                worker.events.as_slice()
            }
            Machine::Warden(warden, WardenState::Ready(warden::Done::Polled(_))) => {
                warden.events.as_slice()
            }
            _ => &[],
        }
    }

    /// It executes a statement.
    pub(super) fn is_executing(&self) -> bool {
        self.statement_in_execution().is_some()
    }

    /// See the field.
    pub(super) fn is_awake(&self) -> bool {
        self.is_awake && !self.has_ended()
    }

    /// See the field.
    pub(super) fn wakes_at(&self) -> Moment {
        self.wakes_at
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.machine, Machine::Ended)
    }
}

impl Simulation {
    pub(super) fn add_thread(&mut self, role: Role, group: GroupId) {
        let (parker, park) = match role {
            // The pool made the warden's sleeping place when it was made itself.
            Role::Warden => (0, Arc::clone(self.pool.warden.parker())),
            _ => self.kernel.new_parker(),
        };
        let machine = self.new_machine(role, group, park);
        self.threads.push(SimThread {
            parker,
            epoch: 0,
            is_awake: true,
            wakes_at: Moment::NEVER,
            machine,
        });
        let alive = self.threads.iter().filter(|t| !t.has_ended()).count();
        self.report.most_threads = self.report.most_threads.max(alive);
        if role == Role::Worker {
            self.check_may_be_started(group);
        }
        self.go_on(self.threads.len() - 1, Micros(50));
    }

    fn new_machine(&self, role: Role, group: GroupId, park: Arc<dyn Park>) -> Machine {
        let pool = Arc::clone(&self.pool);
        match role {
            Role::Worker => {
                let shared = Arc::new(WorkerShared::new(group, park));
                pool.threads.add_worker(Arc::clone(&shared));
                let worker = Worker::new(pool, Arc::clone(&shared));
                let state = WorkerState::Ready(worker::Done::Started);
                Machine::Worker(Box::new(worker), shared, state)
            }
            Role::Login => Machine::Login(
                Box::new(Login::new(pool, park)),
                LoginState::Ready(login::Done::Started),
            ),
            Role::Warden => Machine::Warden(
                Box::new(Warden::new(pool)),
                WardenState::Ready(warden::Done::Started),
            ),
        }
    }

    /// The thread's present state ends after `after`, unless something else ends it before.
    fn go_on(&mut self, thread: ThreadId, after: Micros) {
        let jitter = self.jitter();
        let epoch = self.threads[thread].epoch;
        self.schedule(Micros(after.0 + jitter.0), Event::Thread(thread, epoch));
    }

    /// Something has ended the thread's sleep.
    pub(super) fn wake(&mut self, thread: ThreadId) {
        self.threads[thread].epoch += 1;
        self.threads[thread].is_awake = true;
        self.go_on(thread, Micros(0));
    }

    pub(super) fn thread_event(&mut self, thread: ThreadId, epoch: u64) {
        if self.threads[thread].epoch != epoch {
            return;
        }
        self.threads[thread].epoch += 1;
        self.threads[thread].is_awake = true;
        let machine = std::mem::replace(&mut self.threads[thread].machine, Machine::Ended);
        let machine = match machine {
            Machine::Worker(worker, shared, state) => {
                self.worker_event(thread, worker, shared, state)
            }
            Machine::Login(login, state) => self.login_event(thread, login, state),
            Machine::Warden(warden, state) => self.warden_event(thread, warden, state),
            Machine::Ended => Machine::Ended,
        };
        self.threads[thread].machine = machine;
    }

    fn worker_event(
        &mut self,
        thread: ThreadId,
        mut worker: Box<Worker>,
        shared: Arc<WorkerShared>,
        state: WorkerState,
    ) -> Machine {
        let done = match state {
            WorkerState::Ready(done) => done,
            WorkerState::Polling(max) => {
                self.kernel.collect(shared.group, thread, &mut worker.events, max);
                worker::Done::Polled
            }
            WorkerState::Parked => {
                self.kernel.end_park(self.threads[thread].parker);
                worker::Done::Unparked
            }
            WorkerState::Awaiting(owned) => {
                let fd = self.fd(&owned);
                self.kernel.await_socket(fd, None);
                worker::Done::Awaited(owned, self.kernel.is_readable(fd))
            }
            WorkerState::Executing(owned, message, stage) => {
                if matches!(stage, Stage::Waiting) {
                    self.pool.wait_end(&shared);
                }
                self.finish_command(owned, message)
            }
            WorkerState::Moving => unreachable!("no event comes between two states"),
        };
        let goes_on = matches!(done, worker::Done::Executed(..) | worker::Done::Awaited(..));
        let want = worker.step(self.now(), done);
        if let (worker::Want::Execute(owned), false) = (&want, goes_on) {
            self.check_may_begin(&shared, owned);
        }
        match want {
            worker::Want::Exit => {
                self.note_end_of_thread();
                self.pool.threads.remove_worker(&shared);
                self.pool.warden.kick();
                Machine::Ended
            }
            want => {
                let state = self.worker_wants(thread, &mut worker, &shared, want);
                Machine::Worker(worker, shared, state)
            }
        }
    }

    fn worker_wants(
        &mut self,
        thread: ThreadId,
        worker: &mut Worker,
        shared: &Arc<WorkerShared>,
        want: worker::Want,
    ) -> WorkerState {
        let state = match want {
            worker::Want::Poll { max, timeout: Some(Micros(0)) } => {
                self.kernel.collect(shared.group, thread, &mut worker.events, max);
                WorkerState::Ready(worker::Done::Polled)
            }
            worker::Want::Poll { max, timeout } => {
                if self.kernel.wait_in_poller(shared.group, thread) {
                    return self.sleep(thread, timeout, WorkerState::Polling(max));
                }
                WorkerState::Polling(max)
            }
            worker::Want::Park { timeout } => {
                if self.kernel.park(self.threads[thread].parker, thread) {
                    return self.sleep(thread, timeout, WorkerState::Parked);
                }
                WorkerState::Parked
            }
            worker::Want::Execute(owned) => return self.execute(thread, shared, owned),
            worker::Want::Await(owned, time) => {
                let fd = self.fd(&owned);
                if time > Micros(0) && !self.kernel.is_readable(fd) {
                    self.kernel.await_socket(fd, Some(thread));
                    return self.sleep(thread, Some(time), WorkerState::Awaiting(owned));
                }
                WorkerState::Awaiting(owned)
            }
            worker::Want::Detach(owned) => {
                self.server.detach(self.fd(&owned));
                WorkerState::Ready(worker::Done::Detached(owned))
            }
            worker::Want::Rest(owned) => {
                self.server.detach(self.fd(&owned));
                let armed = driver::arm(&self.pool, &owned, |p, fd, token| p.rearm(fd, token));
                WorkerState::Ready(match armed {
                    Armed::Yes => worker::Done::Rested,
                    refusal => worker::Done::NotRested(owned, refusal),
                })
            }
            worker::Want::Close(owned, reason) => {
                self.server.detach(self.fd(&owned));
                driver::close(&self.pool, owned, reason);
                WorkerState::Ready(worker::Done::Closed)
            }
            worker::Want::Exit => WorkerState::Moving,
        };
        self.go_on(thread, Micros(0));
        state
    }

    fn sleep<S>(&mut self, thread: ThreadId, timeout: Option<Micros>, state: S) -> S {
        self.threads[thread].is_awake = false;
        self.threads[thread].wakes_at = timeout.map_or(Moment::NEVER, |t| self.moment() + t);
        if let Some(timeout) = timeout {
            self.go_on(thread, timeout);
        }
        state
    }

    fn fd(&self, owned: &Owned) -> i32 {
        self.pool.connections.get(owned.token()).expect("owned connections have slots").fd()
    }

    /// Begins the session's next command.
    fn execute(
        &mut self,
        thread: ThreadId,
        shared: &Arc<WorkerShared>,
        owned: Owned,
    ) -> WorkerState {
        let fd = self.fd(&owned);
        self.server.attach(fd, thread);
        let Some(message) = self.kernel.receive(fd) else {
            // End of file.
            self.go_on(thread, Micros(0));
            let outcome = self.server.outcome(fd, true);
            return WorkerState::Ready(worker::Done::Executed(owned, outcome));
        };
        self.command_begins(fd, message);
        self.threads[thread].is_awake = false;
        let stage = match message.command {
            Command::Work(time) => {
                self.go_on(thread, time);
                Stage::Working
            }
            Command::Wait(time) => {
                let kind = if message.number % 2 == 0 { WaitKind::DiskIo } else { WaitKind::Sleep };
                self.pool.wait_begin(shared, kind);
                self.go_on(thread, time);
                Stage::Waiting
            }
            Command::Lock(row) if !self.server.lock_row(fd, row, thread) => {
                self.pool.wait_begin(shared, WaitKind::RowLock);
                Stage::Waiting
            }
            Command::Lock(_) | Command::Commit | Command::Quit => {
                self.go_on(thread, Micros(10));
                Stage::Working
            }
        };
        WorkerState::Executing(owned, message, stage)
    }

    fn finish_command(&mut self, owned: Owned, message: Message) -> worker::Done {
        let fd = self.fd(&owned);
        if message.command == Command::Commit {
            self.server.release_locks(fd);
        }
        self.answer(fd, message);
        let outcome = self.server.outcome(fd, message.command == Command::Quit);
        worker::Done::Executed(owned, outcome)
    }

    fn login_event(
        &mut self,
        thread: ThreadId,
        mut login: Box<Login>,
        state: LoginState,
    ) -> Machine {
        let done = match state {
            LoginState::Ready(done) => done,
            LoginState::Parked => {
                self.kernel.end_park(self.threads[thread].parker);
                login::Done::Unparked
            }
            LoginState::LoggingIn(channel, is_admin) => {
                login::Done::Opened(self.log_in(channel, is_admin))
            }
            LoginState::Moving => unreachable!("no event comes between two states"),
        };
        match login.step(self.now(), done) {
            login::Want::Exit => {
                self.note_end_of_thread();
                self.pool.warden.kick();
                Machine::Ended
            }
            want => {
                let state = self.login_wants(thread, want);
                Machine::Login(login, state)
            }
        }
    }

    fn login_wants(&mut self, thread: ThreadId, want: login::Want) -> LoginState {
        let state = match want {
            login::Want::Park { timeout } => {
                if self.kernel.park(self.threads[thread].parker, thread) {
                    return self.sleep(thread, timeout, LoginState::Parked);
                }
                LoginState::Parked
            }
            login::Want::Open { channel, is_admin } => {
                let time = Micros(self.random.random_range(100..2_000));
                self.go_on(thread, time);
                return LoginState::LoggingIn(channel, is_admin);
            }
            login::Want::Arm(owned) => {
                let armed = driver::arm(&self.pool, &owned, |p, fd, token| p.add(fd, token));
                LoginState::Ready(match armed {
                    Armed::Yes => login::Done::Armed,
                    refusal => login::Done::NotArmed(owned, refusal),
                })
            }
            login::Want::Queue(owned) => {
                LoginState::Ready(match driver::queue(&self.pool, owned) {
                    Ok(()) => login::Done::Armed,
                    Err(owned) => login::Done::NotArmed(owned, Armed::Killed),
                })
            }
            login::Want::Close(owned, reason) => {
                driver::close(&self.pool, owned, reason);
                LoginState::Ready(login::Done::Closed)
            }
            login::Want::CloseUnplaced(session) => {
                self.pool.host.session_close(session, CloseReason::NoResource);
                LoginState::Ready(login::Done::Closed)
            }
            login::Want::Exit => LoginState::Moving,
        };
        self.go_on(thread, Micros(0));
        state
    }

    fn warden_event(
        &mut self,
        thread: ThreadId,
        mut warden: Box<Warden>,
        state: WardenState,
    ) -> Machine {
        let done = match state {
            WardenState::Ready(done) => done,
            WardenState::Parked => {
                self.kernel.end_park(self.threads[thread].parker);
                warden::Done::Unparked
            }
            WardenState::Moving => unreachable!("no event comes between two states"),
        };
        let want = warden.step(self.now(), done);
        if matches!(want, warden::Want::Exit) {
            self.pool.wake_all();
            return Machine::Ended;
        }
        let state = self.warden_wants(thread, &mut warden, want);
        Machine::Warden(warden, state)
    }

    fn warden_wants(
        &mut self,
        thread: ThreadId,
        warden: &mut Warden,
        want: warden::Want,
    ) -> WardenState {
        let state = match want {
            warden::Want::Park { timeout } => {
                if self.kernel.park(self.threads[thread].parker, thread) {
                    return self.sleep(thread, timeout, WardenState::Parked);
                }
                WardenState::Parked
            }
            warden::Want::Poll(group) => {
                self.kernel.collect(group, thread, &mut warden.events, crate::poll::BATCH);
                WardenState::Ready(warden::Done::Polled(group))
            }
            warden::Want::Spawn(role, group) => {
                let refused = self.thread_shortage && self.random.random_bool(0.7);
                self.report.refused_threads += u64::from(refused);
                if !refused {
                    self.add_thread(role, group);
                }
                WardenState::Ready(warden::Done::Spawned(role, group, !refused))
            }
            warden::Want::Join(_) | warden::Want::Log(..) => {
                WardenState::Ready(warden::Done::Finished)
            }
            warden::Want::Exit => WardenState::Moving,
        };
        self.go_on(thread, Micros(0));
        state
    }

    /// When the present moment is, for the modules beside this one.
    pub(super) fn moment(&self) -> Moment {
        self.kernel.now()
    }
}
