//! The life of one connection: log in, wait for the others, transactions until the end.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rand::rngs::SmallRng;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{
    connect::Connector,
    measure::Tally,
    pacing::Pacing,
    wire::Error,
    workload::{
        Role,
        sbtest::{Data, Session},
    },
};

/// Before a lost connection is opened again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// What all connections do at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Log in.
    Login,
    /// Transactions.
    Run,
    /// End after the current transaction.
    Stop,
}

/// How far the logins are.
#[derive(Debug, Default)]
pub struct Logins {
    /// Written by all threads, read by the main one, which wants no other data with it: no ordering needed.
    pub done: AtomicUsize,
    /// The first that failed.
    pub failure: Mutex<Option<Error>>,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    /// What it does.
    pub role: Role,
    /// The number of its class, and its own within the class.
    pub place: (usize, usize),
    /// How it logs in.
    pub connector: Connector,
    /// The tables.
    pub data: Data,
    /// When it begins a transaction.
    pub pacing: Pacing,
    /// Which rows it chooses.
    pub rng: SmallRng,
    /// What all do.
    pub phase: watch::Receiver<Phase>,
    /// Counters of its thread.
    pub tally: Arc<Mutex<Tally>>,
    /// Where it tells that it is ready.
    pub logins: Arc<Logins>,
}

impl Connection {
    /// All of it.
    pub async fn live(mut self) {
        let mut session = None;
        if self.role.keeps_session() {
            match self.open().await {
                Ok(opened) => session = Some(opened),
                Err(error) => {
                    self.logins.failure.lock().expect("no thread panics").get_or_insert(error);
                    return;
                }
            }
        }
        self.logins.done.fetch_add(1, Ordering::Relaxed);
        self.reached(Phase::Run).await;
        if self.role == Role::Idle {
            self.reached(Phase::Stop).await;
        } else {
            self.work(&mut session).await;
        }
        if let Some(session) = session {
            self.check(session.end().await);
        }
    }

    async fn open(&self) -> Result<Session, Error> {
        let client = self.connector.login().await?;
        self.role.open(client, self.data).await
    }

    /// Waits for the phase, or for the main thread's end.
    async fn reached(&mut self, wanted: Phase) {
        let _ = self.phase.wait_for(|phase| *phase == wanted || *phase == Phase::Stop).await;
    }

    fn stopped(&self) -> bool {
        // The only change after Run.
        self.phase.has_changed().unwrap_or(true)
    }

    async fn work(&mut self, session: &mut Option<Session>) {
        while !self.stopped() {
            let Some(intended) = self.next_start().await else { return };
            let result = match session {
                Some(session) => self.role.transaction(session, &mut self.rng).await,
                None if self.role.keeps_session() => return,
                None => Role::transaction_alone(&self.connector, self.data, &mut self.rng).await,
            };
            match result {
                Ok(queries) => {
                    let latency = intended.elapsed();
                    let (class, number) = self.place;
                    self.tally
                        .lock()
                        .expect("no thread panics")
                        .succeeded(class, number, latency, queries);
                }
                Err(error) => {
                    self.count(&error);
                    self.recover(session, &error).await;
                }
            }
        }
    }

    /// The intended start of the next transaction. None at the end.
    async fn next_start(&mut self) -> Option<Instant> {
        if !self.pacing.waits() {
            return self.pacing.next(&mut self.rng).await;
        }
        tokio::select! {
            start = self.pacing.next(&mut self.rng) => start,
            _ = self.phase.changed() => None,
        }
    }

    /// Makes the session usable after an error.
    async fn recover(&mut self, session: &mut Option<Session>, error: &Error) {
        let Some(open) = session else { return };
        if !error.is_connection_lost() && self.check(open.roll_back().await) {
            return;
        }
        *session = None;
        while session.is_none() && !self.stopped() {
            sleep(RECONNECT_PAUSE).await;
            match self.open().await {
                Ok(opened) => *session = Some(opened),
                Err(error) => self.count(&error),
            }
        }
    }

    fn count(&self, error: &Error) {
        self.tally.lock().expect("no thread panics").errors.count(error);
    }

    /// Counts the error, if it is one.
    fn check(&self, result: Result<(), Error>) -> bool {
        result.inspect_err(|error| self.count(error)).is_ok()
    }
}
