//! A MySQL client cut down to what a load needs: log in, prepare, execute and throw the rows away.
//!
//! Packets and authentication are those of mysql_common; what is here decides when an answer is complete, without
//! looking into rows, and without a task switch or an allocation for each packet.

mod error;
mod login;
mod packets;
mod response;

use mysql_common::{
    constants::Command,
    io::ParseBuf,
    packets::{ComStmtExecuteRequestBuilder, StmtPacket},
    proto::{MyDeserialize, MySerialize},
};

pub use error::{DEADLOCK, Error};
pub use login::Account;
pub use mysql_common::value::Value;
pub use packets::Address;
use packets::Packets;
use response::{Part, Response, error_of, text_row};

/// A prepared statement of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement(u32);

/// A session. Dropping it closes the socket without a word; `quit` says goodbye first.
#[derive(Debug)]
pub struct Client {
    packets: Packets,
    request: Vec<u8>,
}

impl Client {
    /// Connects and logs in.
    pub async fn login(account: &Account) -> Result<Self, Error> {
        Ok(Client { packets: login::login(account).await?, request: Vec::new() })
    }

    async fn send(&mut self, command: Command, argument: &[u8]) -> Result<(), Error> {
        self.request.clear();
        self.request.push(command as u8);
        self.request.extend_from_slice(argument);
        self.packets.begin_command();
        self.packets.write(&self.request).await
    }

    /// Reads one answer to its end; `row` gets the packet of each row.
    async fn answer(&mut self, mut row: impl FnMut(&[u8])) -> Result<(), Error> {
        let mut response = Response::default();
        loop {
            while let Some(packet) = self.packets.received()? {
                match response.take(packet)? {
                    Part::Description => {}
                    Part::Row => row(packet),
                    Part::End => return Ok(()),
                }
            }
            self.packets.receive().await?;
        }
    }

    /// Executes a text statement and throws its rows away.
    pub async fn query(&mut self, text: &str) -> Result<(), Error> {
        self.send(Command::COM_QUERY, text.as_bytes()).await?;
        self.answer(|_| {}).await
    }

    /// The rows of a text statement; NULL as None.
    pub async fn rows(&mut self, text: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        let mut rows = Vec::new();
        self.send(Command::COM_QUERY, text.as_bytes()).await?;
        self.answer(|packet| rows.push(text_row(packet))).await?;
        Ok(rows)
    }

    /// Prepares a statement.
    pub async fn prepare(&mut self, text: &str) -> Result<Statement, Error> {
        self.send(Command::COM_STMT_PREPARE, text.as_bytes()).await?;
        let packet = self.packets.read().await?;
        if packet.first() == Some(&0xff) {
            return Err(error_of(&packet));
        }
        let statement = StmtPacket::deserialize((), &mut ParseBuf(&packet))?;
        for _ in 0..usize::from(statement.num_params()) + usize::from(statement.num_columns()) {
            self.packets.read().await?;
        }
        Ok(Statement(statement.statement_id()))
    }

    /// Executes a prepared statement and throws its rows away.
    pub async fn execute(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<(), Error> {
        self.request.clear();
        let (request, _) = ComStmtExecuteRequestBuilder::new(statement.0).build(parameters);
        request.serialize(&mut self.request);
        self.packets.begin_command();
        self.packets.write(&self.request).await?;
        self.answer(|_| {}).await
    }

    /// Whether the server still answers.
    pub async fn ping(&mut self) -> Result<(), Error> {
        self.send(Command::COM_PING, &[]).await?;
        self.answer(|_| {}).await
    }

    /// Says goodbye and closes.
    pub async fn quit(mut self) -> Result<(), Error> {
        self.send(Command::COM_QUIT, &[]).await
    }
}
