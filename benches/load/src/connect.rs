//! Logging in, never too many at a time; and what both sides must allow before thousands can.

use std::{
    io::ErrorKind,
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

use crate::{
    failure::Failure,
    measure::Tally,
    wire::{Account, Client, Error},
};

/// A login that takes longer has failed.
const LOGIN_LIMIT: Duration = Duration::from_secs(60);
/// When a unix socket's queue of connections is full, connecting fails instead of waiting; the next try comes after this.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(1);
/// Descriptors of this process that aren't connections: event loops, timers, files.
const OTHER_DESCRIPTORS: u64 = 64;

/// Makes sessions for the connections of one thread.
#[derive(Debug, Clone)]
pub struct Connector {
    account: Arc<Account>,
    permits: Arc<Semaphore>,
    tally: Arc<Mutex<Tally>>,
}

impl Connector {
    /// At most `concurrency` logins at a time among those who share `permits`.
    pub fn new(account: Arc<Account>, permits: Arc<Semaphore>, tally: Arc<Mutex<Tally>>) -> Self {
        Connector { account, permits, tally }
    }

    /// A new session; how long it took is counted, without the time for which it had to wait for its turn.
    pub async fn login(&self) -> Result<Client, Error> {
        let _permit = self.permits.acquire().await.expect("nobody closes the semaphore");
        let start = Instant::now();
        let client = timeout(LOGIN_LIMIT, self.try_login())
            .await
            .unwrap_or_else(|_| Err(Error::Io(ErrorKind::TimedOut.into())))?;
        self.tally.lock().expect("no thread panics").logins.record(start.elapsed());
        Ok(client)
    }

    async fn try_login(&self) -> Result<Client, Error> {
        loop {
            match Client::login(&self.account).await {
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    sleep(QUEUE_FULL_PAUSE).await
                }
                result => return result,
            }
        }
    }
}

/// Raises the soft limit of open files if that many connections need it.
pub fn allow_descriptors(connections: usize) -> Result<(), Failure> {
    let needed = connections as u64 + OTHER_DESCRIPTORS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    if let Some(hard) = maximum.filter(|hard| *hard < needed) {
        return Err(Failure(format!(
            "--connections {connections} needs {needed} open files, this process may have {hard}: \
             raise the hard limit (ulimit -Hn), or ask for at most {} connections",
            hard.saturating_sub(OTHER_DESCRIPTORS)
        )));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).map_err(|error| {
        Failure(format!("can't raise the limit of open files to {needed}: {error}"))
    })
}

/// Looks whether the server can take so many sessions and prepared statements.
pub async fn check_limits(
    client: &mut Client,
    connections: usize,
    statements: usize,
) -> Result<(), Failure> {
    let rows =
        client.rows("SELECT @@GLOBAL.max_connections, @@GLOBAL.max_prepared_stmt_count").await?;
    let limit = |column: usize| {
        rows[0][column].as_ref().and_then(|text| text.parse::<usize>().ok()).unwrap_or(usize::MAX)
    };
    if connections > limit(0) {
        return Err(Failure(format!(
            "--connections {connections} is more than the server allows, {}: raise its max_connections \
             (and its limit of open files)",
            limit(0)
        )));
    }
    if statements > limit(1) {
        return Err(Failure(format!(
            "the connections would prepare {statements} statements, the server allows {}: raise its \
             max_prepared_stmt_count, or use fewer --connections or --tables",
            limit(1)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_connections_than_the_hard_limit_are_refused_with_a_remedy() {
        let Some(hard) = getrlimit(Resource::Nofile).maximum else { return };
        let Failure(message) = allow_descriptors(hard as usize).unwrap_err();
        assert!(
            message.contains(&format!("--connections {hard} needs {} open files", hard + 64)),
            "{message}"
        );
        assert!(message.contains(&format!("at most {} connections", hard - 64)), "{message}");
        allow_descriptors(1).unwrap();
    }
}
