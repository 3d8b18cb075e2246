//! The simulated operating system: clock, sleeping places, pollers and sockets.

use crate::conn::{Token, command};
use crate::group::GroupId;
use crate::poll::{Events, Poller};
use crate::pool::Platform;
use crate::sync::{Park, Probe};
use crate::time::{Clock, Micros, Moment};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

/// Index of a simulated thread.
pub(super) type ThreadId = usize;

#[derive(Default)]
struct ParkerState {
    unparked: bool,
    sleeper: Option<ThreadId>,
}

#[derive(Default)]
struct PollerState {
    armed: HashMap<i32, Token>,
    registered: HashMap<i32, Token>,
    ready: VecDeque<Token>,
    /// Threads in `wait`; the last one that went to sleep is woken first, as by the kernel.
    waiters: Vec<ThreadId>,
    notified: bool,
}

impl PollerState {
    fn wake_one(&mut self, woken: &mut Vec<ThreadId>) {
        if let Some(thread) = self.waiters.pop() {
            woken.push(thread);
        }
    }
}

/// One end of a connection, as the server sees it.
#[derive(Default)]
struct Socket<M> {
    inbox: VecDeque<M>,
    /// The client has closed it, or a kill has.
    ended: bool,
    poller: Option<GroupId>,
    awaited_by: Option<ThreadId>,
}

struct State<M> {
    now: Moment,
    parkers: Vec<ParkerState>,
    pollers: Vec<PollerState>,
    sockets: Vec<Socket<M>>,
    woken: Vec<ThreadId>,
}

/// A message from a client that shows which command it is.
pub(super) trait PeekCommand: Send + 'static {
    fn command_byte(&self) -> u8;
}

/// The whole of it; `M` is a message from a client.
pub(super) struct Kernel<M> {
    state: Arc<Mutex<State<M>>>,
}

impl<M> Clone for Kernel<M> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<M: PeekCommand> Kernel<M> {
    /// Whether the next message costs next to nothing.
    pub(super) fn next_is_cheap(&self, fd: i32) -> bool {
        let state = self.state.lock();
        let next = state.sockets[fd as usize].inbox.front();
        next.is_some_and(|message| command::is_cheap(message.command_byte()))
    }

    pub(super) fn new() -> Self {
        let state = State {
            now: Moment(1),
            parkers: Vec::new(),
            pollers: Vec::new(),
            sockets: Vec::new(),
            woken: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    pub(super) fn set_now(&self, now: Moment) {
        self.state.lock().now = now;
    }

    pub(super) fn now(&self) -> Moment {
        self.state.lock().now
    }

    /// Threads that were woken since the last call.
    pub(super) fn take_woken(&self) -> Vec<ThreadId> {
        std::mem::take(&mut self.state.lock().woken)
    }

    /// Lets `thread` sleep on a parker; false if it was unparked already.
    pub(super) fn park(&self, parker: usize, thread: ThreadId) -> bool {
        let mut state = self.state.lock();
        let parker = &mut state.parkers[parker];
        if std::mem::take(&mut parker.unparked) {
            return false;
        }
        parker.sleeper = Some(thread);
        true
    }

    /// The sleep is over, for whatever reason.
    pub(super) fn end_park(&self, parker: usize) {
        let mut state = self.state.lock();
        let parker = &mut state.parkers[parker];
        parker.sleeper = None;
        parker.unparked = false;
    }

    /// Lets `thread` wait in a poller; false if there is something to get already.
    pub(super) fn wait_in_poller(&self, group: GroupId, thread: ThreadId) -> bool {
        let mut state = self.state.lock();
        let poller = &mut state.pollers[group as usize];
        if poller.notified || !poller.ready.is_empty() {
            return false;
        }
        poller.waiters.push(thread);
        true
    }

    /// The wait is over, for whatever reason: takes events.
    pub(super) fn collect(
        &self,
        group: GroupId,
        thread: ThreadId,
        events: &mut Events,
        max: usize,
    ) {
        let state = &mut *self.state.lock();
        let poller = &mut state.pollers[group as usize];
        poller.waiters.retain(|waiter| *waiter != thread);
        events.clear();
        if std::mem::take(&mut poller.notified) {
            events.note_notification();
        }
        for _ in 0..max {
            let Some(token) = poller.ready.pop_front() else { break };
            events.push(token);
        }
        // As the kernel does: what one waiter leaves behind wakes the next.
        if !poller.ready.is_empty() {
            poller.wake_one(&mut state.woken);
        }
    }

    /// True if a poller has events that nobody has taken.
    pub(super) fn has_events(&self, group: GroupId) -> bool {
        !self.state.lock().pollers[group as usize].ready.is_empty()
    }

    /// How many events of a connection will still be or can still be collected.
    pub(super) fn events_of(&self, group: GroupId, fd: i32, token: Token) -> usize {
        let poller = &self.state.lock().pollers[group as usize];
        let armed = poller.armed.get(&fd) == Some(&token);
        usize::from(armed) + poller.ready.iter().filter(|ready| **ready == token).count()
    }

    pub(super) fn new_socket(&self) -> i32 {
        let mut state = self.state.lock();
        state.sockets.push(Socket {
            inbox: VecDeque::new(),
            ended: false,
            poller: None,
            awaited_by: None,
        });
        state.sockets.len() as i32 - 1
    }

    /// A message arrives.
    pub(super) fn send(&self, fd: i32, message: M) {
        let state = &mut *self.state.lock();
        state.sockets[fd as usize].inbox.push_back(message);
        state.make_ready(fd);
    }

    /// The connection ends; what was sent before can still be read.
    pub(super) fn end(&self, fd: i32) {
        let state = &mut *self.state.lock();
        state.sockets[fd as usize].ended = true;
        state.make_ready(fd);
    }

    /// A kill closes the descriptor: its registration is gone and no event will come.
    pub(super) fn close(&self, fd: i32) {
        let state = &mut *self.state.lock();
        state.sockets[fd as usize].ended = true;
        state.sockets[fd as usize].inbox.clear();
        if let Some(group) = state.sockets[fd as usize].poller.take() {
            let poller = &mut state.pollers[group as usize];
            let token = poller.registered.remove(&fd);
            poller.armed.remove(&fd);
            poller.ready.retain(|ready| Some(*ready) != token);
        }
        if let Some(thread) = state.sockets[fd as usize].awaited_by.take() {
            state.woken.push(thread);
        }
    }

    pub(super) fn receive(&self, fd: i32) -> Option<M> {
        self.state.lock().sockets[fd as usize].inbox.pop_front()
    }

    pub(super) fn is_readable(&self, fd: i32) -> bool {
        self.state.lock().sockets[fd as usize].is_readable()
    }

    /// Lets `thread` wait until the socket is readable; `None` ends the wait.
    pub(super) fn await_socket(&self, fd: i32, thread: Option<ThreadId>) {
        self.state.lock().sockets[fd as usize].awaited_by = thread;
    }
}

impl<M> Socket<M> {
    fn is_readable(&self) -> bool {
        self.ended || !self.inbox.is_empty()
    }
}

impl<M> State<M> {
    /// Tells whoever waits for this socket, unless nobody does.
    fn make_ready(&mut self, fd: i32) {
        let socket = &mut self.sockets[fd as usize];
        if let Some(thread) = socket.awaited_by.take() {
            self.woken.push(thread);
        }
        let Some(group) = socket.poller else { return };
        let poller = &mut self.pollers[group as usize];
        if let Some(token) = poller.armed.remove(&fd) {
            poller.ready.push_back(token);
            poller.wake_one(&mut self.woken);
        }
    }

    fn arm(&mut self, group: GroupId, fd: i32, token: Token) {
        self.sockets[fd as usize].poller = Some(group);
        self.pollers[group as usize].armed.insert(fd, token);
        if self.sockets[fd as usize].is_readable() {
            self.make_ready(fd);
        }
    }
}

struct SimPoller<M> {
    kernel: Kernel<M>,
    group: GroupId,
}

impl<M: PeekCommand> Poller for SimPoller<M> {
    fn add(&self, fd: i32, token: Token) -> io::Result<()> {
        let mut state = self.kernel.state.lock();
        let former = state.pollers[self.group as usize].registered.insert(fd, token);
        if former.is_some() {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        state.arm(self.group, fd, token);
        Ok(())
    }

    fn rearm(&self, fd: i32, token: Token) -> io::Result<()> {
        let mut state = self.kernel.state.lock();
        state.pollers[self.group as usize].registered.insert(fd, token);
        state.arm(self.group, fd, token);
        Ok(())
    }

    fn wait(&self, _: &mut Events, _: usize, _: Option<Micros>) -> io::Result<()> {
        unreachable!("simulated threads wait in the event loop")
    }

    fn next_command(&self, fd: i32) -> Option<u8> {
        let state = self.kernel.state.lock();
        state.sockets[fd as usize].inbox.front().map(PeekCommand::command_byte)
    }

    fn notify(&self) {
        let state = &mut *self.kernel.state.lock();
        let poller = &mut state.pollers[self.group as usize];
        poller.notified = true;
        poller.wake_one(&mut state.woken);
    }
}

/// A sleeping place of a simulated thread.
pub(super) struct SimParker<M> {
    kernel: Kernel<M>,
    index: usize,
}

impl<M: PeekCommand> Park for SimParker<M> {
    fn unpark(&self) {
        let state = &mut *self.kernel.state.lock();
        let parker = &mut state.parkers[self.index];
        parker.unparked = true;
        if let Some(thread) = parker.sleeper.take() {
            state.woken.push(thread);
        }
    }

    fn park(&self, _: Option<Micros>) {
        unreachable!("simulated threads sleep in the event loop")
    }
}

impl<M: PeekCommand> Kernel<M> {
    /// A new sleeping place and its index.
    pub(super) fn new_parker(&self) -> (usize, Arc<dyn Park>) {
        let mut state = self.state.lock();
        state.parkers.push(ParkerState::default());
        let index = state.parkers.len() - 1;
        (index, Arc::new(SimParker { kernel: self.clone(), index }))
    }
}

impl<M: PeekCommand> Platform for Kernel<M> {
    fn poller(&self, group: GroupId) -> io::Result<Box<dyn Poller>> {
        self.state.lock().pollers.push(PollerState::default());
        Ok(Box::new(SimPoller { kernel: self.clone(), group }))
    }

    fn parker(&self) -> Arc<dyn Park> {
        self.new_parker().1
    }

    fn probe(&self) -> Option<Box<dyn Probe>> {
        None
    }

    fn processor(&self) -> u32 {
        0
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clone())
    }
}

impl<M: PeekCommand> Clock for Kernel<M> {
    fn now(&self) -> Moment {
        Kernel::now(self)
    }
}
