//! A look at one socket, without consuming anything.

use crate::time::Micros;
use std::ptr;

/// True when the socket has bytes to read, has reached its end or has failed; waits for that up
/// to `timeout`. The descriptor may have been closed by a kill meanwhile: the answer is then
/// meaningless but harmless, since whoever acts on it checks the session first.
pub fn wait_readable(fd: i32, timeout: Micros) -> bool {
    if timeout == Micros(0) {
        return peek(fd);
    }
    let mut pollfd = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let timespec = libc::timespec {
        tv_sec: (timeout.0 / 1_000_000) as libc::time_t,
        tv_nsec: (timeout.0 % 1_000_000 * 1_000) as libc::c_long,
    };
    // SAFETY: one pollfd and one timespec on this stack frame, alive for the call.
    let ready = unsafe { libc::ppoll(&mut pollfd, 1, &timespec, ptr::null()) };
    // An interrupted wait counts as "nothing": the caller falls back to the poller.
    ready > 0
}

fn peek(fd: i32) -> bool {
    let mut byte = 0u8;
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the buffer is one byte on this stack frame and the length says so.
    let got = unsafe { libc::recv(fd, ptr::from_mut(&mut byte).cast(), 1, flags) };
    got >= 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::WouldBlock
}
