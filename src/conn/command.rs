//! What the pool knows of the protocol's commands (include/my_command.h).

/// Ends the session.
pub const COM_QUIT: u8 = 1;
/// A line of counters.
pub const COM_STATISTICS: u8 = 9;
/// Is the server alive?
pub const COM_PING: u8 = 14;
/// Resets the session; connection pools send it whenever they hand out a connection.
pub const COM_RESET_CONNECTION: u8 = 31;

/// True for commands that cost less than their wait for a turn. Monitoring and connection pools
/// measure a server by them.
pub fn is_cheap(command: u8) -> bool {
    matches!(command, COM_QUIT | COM_STATISTICS | COM_PING | COM_RESET_CONNECTION)
}
