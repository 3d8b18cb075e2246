//! Random clients: they log in, send commands, think, break off, are killed or fall asleep.

use super::server::{Command, Ended, Message};
use super::{Event, Simulation};
use crate::config::vars;
use crate::host::{Channel, CloseReason, Opened, RejectReason};
use crate::time::{Micros, Moment};
use rand::RngExt;
use std::collections::VecDeque;

pub(super) type ClientId = usize;

/// What a run consists of.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Ordinary thread groups.
    pub groups: u32,
    /// Concurrency limit at the start.
    pub limit: u32,
    /// Workers that the pool has at most, apart from those for sessions that hold locks.
    pub max_workers: u32,
    /// Transactions that may be open at the same time; 0 for any number.
    pub transactions: u32,
    /// By how many milliseconds the beginning of a transaction is delayed.
    pub transaction_delay_ms: u32,
    /// Longest time for which a thread may lose its processor between two steps (over 50 µs).
    pub longest_preemption: Micros,
    /// Number of clients.
    pub clients: usize,
    /// Commands of each client.
    pub commands: usize,
    /// Clients that lock a row of their own first and keep it until they end.
    pub holders: usize,
    /// Whether some commands compute for 10 to 200 ms.
    pub long_work: bool,
    /// Rows that the transactions of the others fight for.
    pub rows: u8,
    /// Whether the operating system often refuses a new thread.
    pub thread_shortage: bool,
    /// Whether clients break off, are killed and fall asleep, logins fail, and the limit is
    /// changed.
    pub chaos: bool,
    /// Time after which a waiting command overtakes those of sessions that hold locks.
    pub kick_up: Micros,
    /// When the server is shut down, if it is.
    pub stops_at: Option<Micros>,
}

/// One client.
pub(super) struct Client {
    fd: i32,
    is_admin: bool,
    wait_timeout: Micros,
    program: VecDeque<Command>,
    next_number: u64,
    /// The command that isn't answered yet, and when it was sent.
    outstanding: Option<(u64, Moment)>,
    idle_since: Moment,
    /// It breaks off instead of sending its last command.
    breaks_off: bool,
    /// It never thinks for long.
    is_hasty: bool,
    killed: bool,
    gone: bool,
}

/// A command that is sent while its session times out may be lost, as with any server.
const TIMEOUT_RACE: Micros = Micros(5_000);

impl Client {
    /// When it sent the command that isn't answered yet.
    pub(super) fn waits_since(&self) -> Option<Moment> {
        self.outstanding.map(|(_, sent)| sent)
    }

    /// Works in one transaction that holds `row`.
    fn hold_lock(&mut self, row: u8) {
        self.is_admin = false;
        self.is_hasty = true;
        for command in &mut self.program {
            if !matches!(command, Command::Work(_) | Command::Quit) {
                *command = Command::Work(Micros(100));
            }
        }
        self.program.push_front(Command::Lock(row));
    }
}

impl Simulation {
    pub(super) fn add_clients(&mut self, workload: &Workload) {
        for id in 0..workload.clients {
            let mut client = self.new_client(workload);
            if id < workload.holders {
                client.hold_lock(u8::MAX - id as u8);
            }
            // The others come when all locks are held.
            let latecomer = workload.holders > 0 && !client.is_hasty;
            self.clients.push(client);
            let earliest = if latecomer { 500_000 } else { 0 };
            let start = Micros(earliest + self.random.random_range(0..20_000));
            self.schedule(start, Event::Client(id));
            if workload.chaos && self.random.random_bool(0.3) {
                let at = Micros(self.random.random_range(0..3_000_000));
                self.schedule(at, Event::Kill(id));
            }
        }
        if let Some(at) = workload.stops_at {
            self.schedule(at, Event::Stop);
        }
        if workload.chaos {
            for _ in 0..3 {
                let at = Micros(self.random.random_range(0..100_000));
                let limit = self.random.random_range(1..=2 * workload.limit);
                self.schedule(at, Event::Set(vars::RTP_VARIABLE_CONCURRENCY_LIMIT, limit));
            }
            self.change_transaction_settings(workload);
        }
    }

    /// Lets somebody change what holds transactions back, if anything does.
    fn change_transaction_settings(&mut self, workload: &Workload) {
        for (variable, most) in [
            (vars::RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT, workload.transactions),
            (vars::RTP_VARIABLE_TRANSACTION_DELAY, workload.transaction_delay_ms),
        ] {
            for _ in 0..3 {
                let at = Micros(self.random.random_range(0..300_000));
                let value = self.random.random_range(0..=2 * most);
                if most > 0 {
                    self.schedule(at, Event::Set(variable, value));
                }
            }
        }
    }

    fn new_client(&mut self, workload: &Workload) -> Client {
        let mut program = VecDeque::new();
        let mut in_transaction = false;
        while program.len() < workload.commands {
            let command = self.random_command(workload, in_transaction);
            in_transaction = match command {
                Command::Lock(_) => true,
                Command::Commit => false,
                _ => in_transaction,
            };
            program.push_back(command);
        }
        program.push_back(Command::Quit);
        let sleepy = workload.chaos && self.random.random_bool(0.2);
        Client {
            fd: self.kernel.new_socket(),
            is_admin: self.random.random_bool(0.05),
            wait_timeout: Micros::from_secs(if sleepy { 1 } else { 28_800 }),
            program,
            next_number: 0,
            outstanding: None,
            idle_since: Moment::default(),
            breaks_off: workload.chaos && self.random.random_bool(0.2),
            is_hasty: false,
            killed: false,
            gone: false,
        }
    }

    fn random_command(&mut self, workload: &Workload, in_transaction: bool) -> Command {
        match self.random.random_range(0..10) {
            0 if !in_transaction => Command::Lock(self.random.random_range(0..workload.rows)),
            0..=2 if in_transaction => Command::Commit,
            3 => Command::Wait(Micros(self.random.random_range(50..5_000))),
            4 if workload.long_work && self.random.random_bool(0.1) => {
                Command::Work(Micros(self.random.random_range(10_000..200_000)))
            }
            _ => Command::Work(Micros(self.random.random_range(20..500))),
        }
    }

    pub(super) fn client_event(&mut self, id: ClientId) {
        let now = self.moment();
        let client = &mut self.clients[id];
        if client.gone {
            return;
        }
        if client.next_number == 0 && client.outstanding.is_none() {
            let channel = Channel::from_raw(client.fd as usize);
            let is_admin = client.is_admin;
            if let Err(channel) = self.pool.add_connection(channel, is_admin) {
                assert!(self.pool.is_stopping(), "a channel was refused");
                self.pool.host.channel_reject(channel, RejectReason::Shutdown);
                return;
            }
            self.report.channels += 1;
        }
        let client = &mut self.clients[id];
        let last = client.program.len() == 1;
        if last && client.breaks_off {
            self.kernel.end(client.fd);
            return;
        }
        let Some(command) = client.program.pop_front() else { return };
        client.next_number += 1;
        client.outstanding = Some((client.next_number, now));
        self.kernel.send(client.fd, Message { number: client.next_number, command });
    }

    pub(super) fn kill_event(&mut self, id: ClientId) {
        let client = &mut self.clients[id];
        if client.gone || client.killed {
            return;
        }
        let fd = client.fd;
        if self.server.is_open(fd) {
            client.killed = true;
            self.report.kills += 1;
            let pool = std::sync::Arc::clone(&self.pool);
            self.server.kill(fd, |token| pool.kill(token));
        }
    }

    /// The server's shutdown: it kills all sessions, then it stops the pool.
    pub(super) fn stop_event(&mut self) {
        for fd in self.server.stop() {
            let client = self.client_of(fd);
            self.kill_event(client);
        }
        self.pool.announce_stop();
        self.report.stopped_at = Some(self.kernel.now());
    }

    pub(super) fn channel_rejected(&mut self, fd: i32) {
        let id = self.client_of(fd);
        self.client_is_gone(id);
        self.clients[id].outstanding = None;
        self.report.turned_away += 1;
    }

    /// Its channel or its session has been consumed.
    fn client_is_gone(&mut self, id: ClientId) {
        let client = &mut self.clients[id];
        assert!(!client.gone, "client {id}: its channel or session ended twice");
        client.gone = true;
    }

    pub(super) fn log_in(&mut self, channel: Channel, is_admin: bool) -> Option<Opened> {
        let client = self.client_of(channel.as_raw() as i32);
        if self.chaos && self.random.random_bool(0.03) {
            self.client_is_gone(client);
            self.clients[client].outstanding = None;
            self.kernel.end(channel.as_raw() as i32);
            self.report.failed_logins += 1;
            return None;
        }
        let wait_timeout = self.clients[client].wait_timeout;
        self.clients[client].idle_since = self.kernel.now();
        let mut opened = self.server.open(&channel, wait_timeout, is_admin);
        opened.outcome.buffered =
            self.kernel.is_readable(opened.fd) && self.random.random_bool(0.3);
        Some(opened)
    }

    pub(super) fn client_of(&self, fd: i32) -> ClientId {
        // Sockets are made in the order of the clients.
        fd as ClientId
    }

    pub(super) fn is_admin(&self, fd: i32) -> bool {
        self.clients[self.client_of(fd)].is_admin
    }

    pub(super) fn command_begins(&mut self, fd: i32, message: Message) {
        let client = &self.clients[self.client_of(fd)];
        let Some((number, sent)) = client.outstanding else { return };
        assert_eq!(number, message.number, "commands are executed in order");
        let queueing = self.moment().since(sent);
        self.check_was_delayed(fd, message.command, queueing);
        let longest = if self.server.with(fd, |session| !session.locks.is_empty()) {
            &mut self.report.longest_holder_queueing
        } else if client.is_hasty || number == 1 {
            // It hasn't got its lock yet, or the time contains its login.
            return;
        } else {
            &mut self.report.longest_low_queueing
        };
        *longest = (*longest).max(queueing);

        self.check_queueing();
    }

    pub(super) fn answer(&mut self, fd: i32, message: Message) {
        let id = self.client_of(fd);
        let client = &mut self.clients[id];
        if client.killed {
            return;
        }
        let (number, _) = client.outstanding.take().expect("only commands are answered");
        assert_eq!(number, message.number, "each command is answered once");
        client.idle_since = self.kernel.now();
        self.report.answered += 1;
        let think = self.think_time(id);
        self.schedule(think, Event::Client(id));
    }

    fn think_time(&mut self, id: ClientId) -> Micros {
        let sleepy = self.clients[id].wait_timeout < Micros::from_secs(100);
        match self.random.random_range(0..20) {
            _ if self.clients[id].is_hasty => Micros(self.random.random_range(5..200)),
            0 if sleepy => Micros(self.random.random_range(900_000..1_100_000)),
            0..=2 => Micros(self.random.random_range(1_000..10_000)),
            _ => Micros(self.random.random_range(5..200)),
        }
    }

    pub(super) fn session_ended(&mut self, session: Ended) {
        let now = self.moment();
        let id = self.client_of(session.fd);
        let client = &mut self.clients[id];
        if session.reason == CloseReason::IdleTimeout {
            self.report.timeouts += 1;
            let end = client.idle_since + client.wait_timeout;
            assert!(now >= end, "client {id} timed out too early");
            self.report.latest_timeout = self.report.latest_timeout.max(now.since(end));
        }
        let lost = client.outstanding.take().filter(|_| !client.killed);
        self.client_is_gone(id);
        if let Some((number, sent)) = lost {
            let raced = self.pool.is_stopping()
                || session.reason == CloseReason::IdleTimeout && now.since(sent) < TIMEOUT_RACE;
            assert!(raced, "client {id}: command {number} was lost ({:?})", session.reason);
        }
    }

    /// Clients that still wait for something.
    pub(super) fn unfinished_clients(&self) -> Vec<ClientId> {
        (0..self.clients.len()).filter(|id| !self.clients[*id].gone).collect()
    }
}
