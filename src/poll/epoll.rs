//! [`Poller`] on Linux' epoll, with an eventfd for `notify`.

use super::{BATCH, Events, Poller, socket};
use crate::conn::Token;
use crate::time::Micros;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// Identifies the eventfd in epoll's answers; no token has this value (its slot doesn't exist).
const WAKE: u64 = u64::MAX;

/// See the module.
pub struct Epoll {
    epoll: OwnedFd,
    wake: OwnedFd,
}

impl Epoll {
    /// An empty set. Fails when the process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: as above.
        let wake = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let this = Self { epoll, wake };
        // Edge-triggered: each write wakes one waiter, and nobody has to read the counter.
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        this.control(libc::EPOLL_CTL_ADD, this.wake.as_raw_fd(), events, WAKE)?;
        Ok(this)
    }

    fn control(&self, operation: i32, fd: i32, events: u32, data: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: data };
        // SAFETY: the event lives on this stack frame; the descriptors are checked by the kernel.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

const ONE_SHOT: u32 = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;

impl Poller for Epoll {
    fn add(&self, fd: i32, token: Token) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, ONE_SHOT, token.raw())
    }

    fn rearm(&self, fd: i32, token: Token) -> io::Result<()> {
        match self.control(libc::EPOLL_CTL_MOD, fd, ONE_SHOT, token.raw()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => self.add(fd, token),
            result => result,
        }
    }

    fn wait(&self, events: &mut Events, max: usize, timeout: Option<Micros>) -> io::Result<()> {
        events.clear();
        let mut buffer = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        let max = max.clamp(1, BATCH);
        // Rounded up to epoll's milliseconds, so that a deadline never spins.
        let timeout_ms = match timeout {
            Some(t) => t.0.div_ceil(1_000).min(i32::MAX as u64) as i32,
            None => -1,
        };
        // SAFETY: the buffer has room for `max` ≤ BATCH events.
        let count = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), buffer.as_mut_ptr(), max as i32, timeout_ms)
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        for event in &buffer[..count as usize] {
            let data = event.u64;
            if data == WAKE {
                events.note_notification();
            } else {
                events.push(Token::from_raw(data));
            }
        }
        Ok(())
    }

    fn next_command(&self, fd: i32) -> Option<u8> {
        socket::peek_command(fd)
    }

    fn notify(&self) {
        let one = 1u64;
        // SAFETY: eight bytes on this stack frame, as an eventfd wants them. It can fail only
        // when the counter is full, and then the descriptor is readable anyway.
        unsafe { libc::write(self.wake.as_raw_fd(), ptr::from_ref(&one).cast(), 8) };
    }
}

fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn wait(poller: &Epoll, timeout_ms: u64) -> Vec<Token> {
        let mut events = Events::default();
        poller.wait(&mut events, BATCH, Some(Micros::from_millis(timeout_ms))).unwrap();
        events.as_slice().to_vec()
    }

    #[test]
    fn an_event_disarms_until_the_next_rearm() {
        let poller = Epoll::new().unwrap();
        let (mut client, mut server) = UnixStream::pair().unwrap();
        let token = Token::new(1, 5);
        poller.add(server.as_raw_fd(), token).unwrap();
        assert!(wait(&poller, 0).is_empty());
        client.write_all(b"ab").unwrap();
        assert_eq!(wait(&poller, 1_000), [token]);
        assert!(wait(&poller, 0).is_empty(), "one shot");
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
        poller.rearm(server.as_raw_fd(), token).unwrap();
        assert_eq!(wait(&poller, 1_000), [token], "the rest is still there");
        drop(client);
        poller.rearm(server.as_raw_fd(), token).unwrap();
        assert_eq!(wait(&poller, 1_000), [token], "end of file is an event");
    }

    #[test]
    fn each_notify_ends_one_wait_even_if_it_came_first() {
        let poller = Epoll::new().unwrap();
        for _ in 0..3 {
            poller.notify();
            let mut events = Events::default();
            poller.wait(&mut events, 1, None).unwrap();
            assert!(events.as_slice().is_empty());
        }
    }

    #[test]
    fn a_closed_descriptor_is_an_error_and_not_a_panic() {
        let poller = Epoll::new().unwrap();
        let error = poller.rearm(-1, Token::new(1, 1)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn peeking_consumes_nothing_and_sees_the_end() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let fd = server.as_raw_fd();
        assert!(!super::super::wait_readable(fd, Micros(0)));
        assert!(!super::super::wait_readable(fd, Micros(1)));
        client.write_all(b"x").unwrap();
        assert!(super::super::wait_readable(fd, Micros(0)));
        assert!(super::super::wait_readable(fd, Micros::from_millis(1_000)));
        drop(client);
        assert!(super::super::wait_readable(fd, Micros(0)));
    }
}
