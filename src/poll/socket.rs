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
    let got = peek_into(fd, &mut [0]);
    got >= 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::WouldBlock
}

/// The command byte of the next packet: it follows the header of three bytes of length and one of
/// sequence, which is zero for a command.
pub(super) fn peek_command(fd: i32) -> Option<u8> {
    let mut start = [0u8; 5];
    let got = peek_into(fd, &mut start);
    (got == start.len() as isize && start[3] == 0).then_some(start[4])
}

fn peek_into(fd: i32, buffer: &mut [u8]) -> isize {
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the buffer is exclusively borrowed for the call, and the length is its own.
    unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), flags) }
}
