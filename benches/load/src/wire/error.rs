//! What can go wrong between client and server.

use mysql_common::packets::ServerError;

/// An InnoDB deadlock: the server rolled the transaction back, and the client begins another.
pub const DEADLOCK: u16 = 1213;

/// Why a statement or a login failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered with an error; the connection is still good unless it was a login.
    #[error("server error {code}: {message}")]
    Server {
        /// MySQL's number, such as 1040.
        code: u16,
        /// MySQL's text.
        message: String,
    },
    /// The socket failed or was closed.
    #[error("connection failed: {0}")]
    Io(#[from] std::io::Error),
    /// The bytes make no sense to this client.
    #[error("protocol error: {0}")]
    Protocol(String),
}

impl Error {
    /// `what` should have come.
    pub fn unexpected(what: &str, packet: &[u8]) -> Self {
        let head = &packet[..packet.len().min(16)];
        Error::Protocol(format!("expected {what}, the packet begins with {head:02x?}"))
    }

    /// MySQL's number, if it was the server that refused.
    pub fn code(&self) -> Option<u16> {
        match self {
            Error::Server { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the connection can't be used any more.
    pub fn is_connection_lost(&self) -> bool {
        !matches!(self, Error::Server { .. })
    }
}

impl From<&ServerError<'_>> for Error {
    fn from(error: &ServerError<'_>) -> Self {
        Error::Server { code: error.error_code(), message: error.message_str().into_owned() }
    }
}
