//! Packets over a unix socket or TCP.

use bytes::BytesMut;
use mysql_common::proto::codec::PacketCodec;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};

use super::error::Error;

/// Room for a short answer; grows for connections that read long ones, so that thousands of idle ones stay small.
const READ_BYTES: usize = 1 << 10;

/// Where a server listens.
#[derive(Debug, Clone)]
pub enum Address {
    /// The path of its unix socket.
    Socket(String),
    /// Host name or address, and port.
    Tcp(String, u16),
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Socket(path) => write!(formatter, "{path}"),
            Address::Tcp(host, port) => write!(formatter, "{host}:{port}"),
        }
    }
}

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A connection that speaks in packets.
#[derive(Debug)]
pub struct Packets {
    stream: Stream,
    codec: PacketCodec,
    input: BytesMut,
    output: BytesMut,
    packet: Vec<u8>,
}

impl Packets {
    /// Connects the socket.
    pub async fn connect(address: &Address) -> Result<Self, Error> {
        let stream = match address {
            Address::Socket(path) => Stream::Unix(UnixStream::connect(path).await?),
            Address::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
        };
        Ok(Packets {
            stream,
            codec: PacketCodec::default(),
            input: BytesMut::new(),
            output: BytesMut::new(),
            packet: Vec::new(),
        })
    }

    /// Whether the connection can't leave this machine, so that a password may be sent as it is.
    pub fn is_local(&self) -> bool {
        matches!(self.stream, Stream::Unix(_))
    }

    /// Begins a command: the count of packets starts again.
    pub fn begin_command(&mut self) {
        self.codec.reset_seq_id();
    }

    /// Sends one packet.
    pub async fn write(&mut self, payload: &[u8]) -> Result<(), Error> {
        self.output.clear();
        self.codec.encode(&mut &*payload, &mut self.output).map_err(protocol_error)?;
        match &mut self.stream {
            Stream::Unix(stream) => stream.write_all(&self.output).await?,
            Stream::Tcp(stream) => stream.write_all(&self.output).await?,
        }
        Ok(())
    }

    /// The next packet if all of it has been received.
    pub fn received(&mut self) -> Result<Option<&[u8]>, Error> {
        self.packet.clear();
        let whole = self.codec.decode(&mut self.input, &mut self.packet).map_err(protocol_error)?;
        Ok(whole.then_some(&self.packet))
    }

    /// Receives what is there, at least one byte.
    pub async fn receive(&mut self) -> Result<(), Error> {
        self.input.reserve(READ_BYTES.max(self.input.len()));
        let count = match &mut self.stream {
            Stream::Unix(stream) => stream.read_buf(&mut self.input).await?,
            Stream::Tcp(stream) => stream.read_buf(&mut self.input).await?,
        };
        if count == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    /// The next packet.
    pub async fn read(&mut self) -> Result<Vec<u8>, Error> {
        loop {
            if let Some(packet) = self.received()? {
                return Ok(packet.to_vec());
            }
            self.receive().await?;
        }
    }
}

fn protocol_error(error: impl std::fmt::Display) -> Error {
    Error::Protocol(error.to_string())
}
