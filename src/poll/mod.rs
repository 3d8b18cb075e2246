//! Waiting for idle clients.

mod epoll;
mod socket;

pub use epoll::Epoll;
pub use socket::wait_readable;

use crate::conn::Token;
use crate::time::Micros;
use std::io;

/// Most events that one wait returns.
pub const BATCH: usize = 64;

/// Tokens of connections that have something to read.
#[derive(Debug)]
pub struct Events {
    tokens: [Token; BATCH],
    len: usize,
    notified: bool,
}

impl Default for Events {
    fn default() -> Self {
        Self { tokens: [Token::from_raw(0); BATCH], len: 0, notified: false }
    }
}

impl Events {
    /// Empties the list.
    pub fn clear(&mut self) {
        self.len = 0;
        self.notified = false;
    }

    /// Notes that a notification was among the events.
    pub fn note_notification(&mut self) {
        self.notified = true;
    }

    /// True if a notification was among the events.
    pub fn was_notified(&self) -> bool {
        self.notified
    }

    /// Appends a token; the list holds [`BATCH`] of them.
    pub fn push(&mut self, token: Token) {
        self.tokens[self.len] = token;
        self.len += 1;
    }

    /// The tokens.
    pub fn as_slice(&self) -> &[Token] {
        &self.tokens[..self.len]
    }
}

/// One set of idle connections. Registrations are one-shot: an event disarms its connection.
pub trait Poller: Send + Sync {
    /// Registers a socket for the first time, armed.
    fn add(&self, fd: i32, token: Token) -> io::Result<()>;

    /// Arms a socket again; also for the first time, if its first command came with the login.
    fn rearm(&self, fd: i32, token: Token) -> io::Result<()>;

    /// Waits for up to `max` events (1 to [`BATCH`]), for at most `timeout` (`None`: for ever),
    /// and puts them into `events`. Returns early with none after a `notify` or a signal.
    fn wait(&self, events: &mut Events, max: usize, timeout: Option<Micros>) -> io::Result<()>;

    /// The command byte of the next packet of a plain connection, if a whole packet header has
    /// arrived. Consumes nothing.
    fn next_command(&self, fd: i32) -> Option<u8>;

    /// Lets one present or future `wait` return.
    fn notify(&self);
}
