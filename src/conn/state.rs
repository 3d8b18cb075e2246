//! One connection: a word that says who owns it, and the data that only the owner touches.
//!
//! ```text
//!            claim                    arm (under the session's lock)
//!   Free ──open──▶ Owned ──────────────────────────────▶ Armed
//!    ▲               │ ▲                                   │ event, kill or timeout:
//!    │ close         │ │ claim of a queued one             │ exactly one of them wins
//!    └───────────────┘ └───────────── Queued ◀─────────────┤
//!                          enqueue ▲                       │
//!                                  └──── Owned ◀───────────┘ (event, claimed directly)
//! ```
//!
//! Every move is a compare-and-exchange on the whole word, generation included, so a late event,
//! kill or queue entry of a former connection fails instead of touching its successor.

use super::{Priority, PriorityWishes, Token};
use crate::host::{Outcome, Session};
use crate::stats::{ConnectionStats, ConnectionView};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::time::Moment;

/// Who owns a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Nobody; the slot is unused.
    Free = 0,
    /// One thread, which holds the [`Owned`] value.
    Owned = 1,
    /// The poller of its group; the client is idle.
    Armed = 2,
    /// A queue.
    Queued = 3,
}

/// What has happened to a connection while somebody else owned it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// It was killed.
    pub killed: bool,
    /// Its `wait_timeout` ran out.
    pub expired: bool,
    /// A timeout was forgiven because its command came at the last moment. The event of that
    /// command may still be on its way through a poller's hands and look like a new one, so
    /// from now on an event must be verified.
    pub doubtful: bool,
}

const KILLED: u64 = 1 << 8;
const EXPIRED: u64 = 1 << 9;
const DOUBTFUL: u64 = 1 << 10;
const PHASE: u64 = 0xff;

/// Evidence that its holder is the connection's only owner.
#[derive(Debug)]
pub struct Owned {
    token: Token,
}

impl Owned {
    /// Whose owner.
    pub fn token(&self) -> Token {
        self.token
    }
}

/// What [`Connection::look`] has seen.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Who owned it.
    pub phase: Phase,
    /// What had happened to it.
    pub marks: Marks,
    /// Its group.
    pub group: u32,
    /// When its idle time ends; [`Moment::NEVER`] if it never was idle.
    pub idle_deadline: Moment,
    /// Its numbers.
    pub numbers: ConnectionView,
}

/// A slot of the [`super::Slab`].
pub struct Connection {
    /// `generation (32) | 0 | doubtful (1) | expired (1) | killed (1) | phase (8)`.
    /// Written by whoever moves the connection on: Acquire on claim, Release on hand-over, which
    /// also orders all other fields between two owners.
    word: AtomicU64,
    /// The host's session. Written by the owner at open and close.
    session: AtomicUsize,
    /// Its socket. Written by the owner at open.
    fd: AtomicU32,
    /// Its group. Written by the owner at open.
    group: AtomicU32,
    /// 1 while its last command left it holding locks. Written by the owner, read at queueing.
    holds_locks: AtomicU32,
    /// 1 if its commands can be read off the socket. Written by the owner, read at queueing.
    is_plain: AtomicU32,
    /// Where its last command was executed. Written by the owner, read at queueing; it only
    /// decides an order.
    processor: AtomicU32,
    /// [`PriorityWishes`] of its session, packed. Written by the owner, read at queueing.
    wishes: AtomicU64,
    /// How often it may still go into the high queue. Written by the owner.
    tickets_left: AtomicU32,
    /// When its transaction began, if the limit of transactions was in force then; else
    /// `u64::MAX`. Written by the owner.
    transaction_us: AtomicU64,
    /// 1 if its next statement has been delayed already. Written by the owner.
    was_delayed: AtomicU32,
    /// When `wait_timeout` runs out, if it stays idle. Written by the owner, read by the warden.
    idle_deadline_us: AtomicU64,
    /// When the warden will look at it next. Written under the timers' lock; a stale read by the
    /// owner can only cause one needless entry.
    timer_at_us: AtomicU64,
    /// For the tables. Written by the owner.
    stats: ConnectionStats,
}

impl Connection {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            session: AtomicUsize::new(0),
            fd: AtomicU32::new(0),
            group: AtomicU32::new(0),
            holds_locks: AtomicU32::new(0),
            is_plain: AtomicU32::new(0),
            processor: AtomicU32::new(0),
            wishes: AtomicU64::new(0),
            tickets_left: AtomicU32::new(0),
            transaction_us: AtomicU64::new(u64::MAX),
            was_delayed: AtomicU32::new(0),
            idle_deadline_us: AtomicU64::new(0),
            timer_at_us: AtomicU64::new(u64::MAX),
            stats: ConnectionStats::default(),
        }
    }

    fn encode(generation: u32, phase: Phase, marks: u64) -> u64 {
        u64::from(generation) << 32 | marks | phase as u64
    }

    fn generation_of(word: u64) -> u32 {
        (word >> 32) as u32
    }

    fn marks_of(word: u64) -> Marks {
        Marks {
            killed: word & KILLED != 0,
            expired: word & EXPIRED != 0,
            doubtful: word & DOUBTFUL != 0,
        }
    }

    /// `Free → Owned` with the next generation. Only the slab calls this, for a slot that it has
    /// taken off its free list.
    pub(super) fn open(&self, index: u32, session: Session, fd: i32, group: u32) -> Owned {
        let before = self.word.load(Ordering::Acquire);
        debug_assert_eq!(before & PHASE, Phase::Free as u64);
        // Zero is left out so that no token is zero.
        let generation = Self::generation_of(before).wrapping_add(1).max(1);
        self.session.store(session.as_raw(), Ordering::Relaxed);
        self.fd.store(fd as u32, Ordering::Relaxed);
        self.group.store(group, Ordering::Relaxed);
        self.note_outcome(&Outcome::default());
        self.set_transaction(None);
        self.idle_deadline_us.store(u64::MAX, Ordering::Relaxed);
        self.timer_at_us.store(u64::MAX, Ordering::Relaxed);
        self.stats.clear();
        self.word.store(Self::encode(generation, Phase::Owned, 0), Ordering::Release);
        Owned { token: Token::new(generation, index) }
    }

    /// `Owned → Free`; returns the session for closing.
    pub(super) fn close(&self, owned: Owned) -> Session {
        let session = Session::from_raw(self.session.swap(0, Ordering::Relaxed));
        let word = Self::encode(owned.token.generation(), Phase::Free, 0);
        self.word.store(word, Ordering::Release);
        session
    }

    /// Any phase `→ Free`; returns the session if there was one. Only at the pool's end.
    pub(super) fn evict(&self) -> Option<Session> {
        let word = self.word.fetch_and(!PHASE, Ordering::AcqRel);
        let in_use = word & PHASE != Phase::Free as u64;
        in_use.then(|| Session::from_raw(self.session.swap(0, Ordering::Relaxed)))
    }

    /// Moves `from → to` for this generation only; marks stay. Returns the marks, or `None` if
    /// the connection isn't in `from` or is a later one.
    fn shift(&self, token: Token, from: Phase, to: Phase, add: u64) -> Option<Marks> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if Self::generation_of(word) != token.generation() || word & PHASE != from as u64 {
                return None;
            }
            let next = (word & !PHASE) | add | to as u64;
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(Self::marks_of(next)),
                Err(now) => word = now,
            }
        }
    }

    /// A poller's event: `Armed → Owned`. `None` if a kill or a timeout was first, or the event
    /// is a former connection's.
    pub fn claim_armed(&self, token: Token) -> Option<(Owned, Marks)> {
        self.shift(token, Phase::Armed, Phase::Owned, 0).map(|marks| (Owned { token }, marks))
    }

    /// A queue entry's turn: `Queued → Owned`. `None` if the entry is stale.
    pub fn claim_queued(&self, token: Token) -> Option<(Owned, Marks)> {
        self.shift(token, Phase::Queued, Phase::Owned, 0).map(|marks| (Owned { token }, marks))
    }

    /// `Owned → Armed`; called under the session's lock just before the registration.
    pub fn hand_to_poller(&self, owned: &Owned) {
        let moved = self.shift(owned.token, Phase::Owned, Phase::Armed, 0);
        assert!(moved.is_some(), "an owned connection left its owner");
    }

    /// `Armed → Owned` after a registration that failed; the session's lock is still held.
    pub fn take_back_from_poller(&self, owned: &Owned) {
        let moved = self.shift(owned.token, Phase::Armed, Phase::Owned, 0);
        assert!(moved.is_some(), "nothing can claim a connection that isn't registered");
    }

    /// `Owned → Queued`; the caller must put the token into a queue.
    pub fn hand_to_queue(&self, owned: Owned) -> (Token, Marks) {
        let moved = self.shift(owned.token, Phase::Owned, Phase::Queued, 0);
        (owned.token, moved.expect("an owned connection left its owner"))
    }

    /// Marks the connection killed. True if the caller must queue it: it was idle (now `Queued`)
    /// or stands in a queue where it might wait long (a second entry goes to the admin group;
    /// whichever entry comes first wins).
    pub fn kill(&self, token: Token) -> bool {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let phase = word & PHASE;
            if Self::generation_of(word) != token.generation() || phase == Phase::Free as u64 {
                return false;
            }
            let already = word & KILLED != 0;
            let idle = phase == Phase::Armed as u64;
            let phase = if idle { Phase::Queued as u64 } else { phase };
            let next = (word & !PHASE) | KILLED | phase;
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return idle || (phase == Phase::Queued as u64 && !already),
                Err(now) => word = now,
            }
        }
    }

    /// The idle time is over: `Armed → Queued`, marked expired. False if it isn't idle any more.
    pub fn expire(&self, token: Token) -> bool {
        self.shift(token, Phase::Armed, Phase::Queued, EXPIRED).is_some()
    }

    /// An expiry came together with a command: `expired` becomes `doubtful`.
    pub fn forgive_expiry(&self, owned: &Owned) {
        debug_assert!(self.names(owned.token));
        self.word.fetch_or(DOUBTFUL, Ordering::AcqRel);
        self.word.fetch_and(!EXPIRED, Ordering::AcqRel);
    }

    /// True while the slot's present life is `token`'s.
    pub fn names(&self, token: Token) -> bool {
        let word = self.word.load(Ordering::Acquire);
        Self::generation_of(word) == token.generation() && word & PHASE != Phase::Free as u64
    }

    /// The token of its present life, if it is in use; `index` is its place in the table.
    #[cfg(feature = "sim")]
    pub(super) fn token(&self, index: u32) -> Option<Token> {
        let word = self.word.load(Ordering::Acquire);
        let in_use = word & PHASE != Phase::Free as u64;
        in_use.then(|| Token::new(Self::generation_of(word), index))
    }

    /// Present phase, for tables and tests.
    pub fn phase(&self) -> Phase {
        Self::phase_of(self.word.load(Ordering::Acquire))
    }

    fn phase_of(word: u64) -> Phase {
        match word & PHASE {
            0 => Phase::Free,
            1 => Phase::Owned,
            2 => Phase::Armed,
            _ => Phase::Queued,
        }
    }

    /// Its numbers. Only the owner may change them.
    pub(crate) fn stats(&self) -> &ConnectionStats {
        &self.stats
    }

    /// A look at the connection by somebody who doesn't own it; `None` if there is none. Each
    /// number is right for some moment of its present life; all of them are for the same moment
    /// if nobody moved it meanwhile, which is tried a few times.
    pub fn look(&self) -> Option<Look> {
        const TRIES: u32 = 3;
        let mut before = self.word.load(Ordering::Acquire);
        for attempt in 1..=TRIES {
            if before & PHASE == Phase::Free as u64 {
                return None;
            }
            let look = Look {
                phase: Self::phase_of(before),
                marks: Self::marks_of(before),
                group: self.group(),
                idle_deadline: self.idle_deadline(),
                numbers: self.stats.view(),
            };
            let after = self.word.load(Ordering::Acquire);
            let is_same_life = Self::generation_of(after) == Self::generation_of(before)
                && after & PHASE != Phase::Free as u64;
            if after == before || is_same_life && attempt == TRIES {
                return Some(look);
            }
            before = after;
        }
        None
    }

    /// Calls `f` with the session. The evidence shows that nobody else can close it meanwhile.
    pub fn with_session<R>(&self, owned: &Owned, f: impl FnOnce(&Session) -> R) -> R {
        debug_assert!(self.names(owned.token));
        f(&Session::from_raw(self.session.load(Ordering::Relaxed)))
    }

    /// The session's name for a call after which somebody else may own it.
    pub(crate) fn session(&self, owned: &Owned) -> Session {
        debug_assert!(self.names(owned.token));
        Session::from_raw(self.session.load(Ordering::Relaxed))
    }

    /// The socket.
    pub fn fd(&self) -> i32 {
        self.fd.load(Ordering::Relaxed) as i32
    }

    /// The index of its group.
    pub fn group(&self) -> u32 {
        self.group.load(Ordering::Relaxed)
    }

    /// Whether it held locks after its last command.
    pub fn holds_locks(&self) -> bool {
        self.holds_locks.load(Ordering::Relaxed) != 0
    }

    /// Whether its commands can be read off the socket.
    pub fn is_plain(&self) -> bool {
        self.is_plain.load(Ordering::Relaxed) != 0
    }

    /// The processor on which its last command was executed.
    pub fn processor(&self) -> u32 {
        self.processor.load(Ordering::Relaxed)
    }

    /// See [`Connection::processor`]. Only for the owner.
    pub fn set_processor(&self, processor: u32) {
        self.processor.store(processor, Ordering::Relaxed);
    }

    /// Notes what it looks like after a command. Only for the owner.
    pub fn note_outcome(&self, outcome: &Outcome) {
        self.holds_locks.store(u32::from(outcome.holds_locks), Ordering::Relaxed);
        self.is_plain.store(u32::from(outcome.is_plain), Ordering::Relaxed);
        self.wishes.store(outcome.wishes.pack(), Ordering::Relaxed);
        self.was_delayed.store(0, Ordering::Relaxed);
        if !outcome.holds_locks {
            self.tickets_left.store(outcome.wishes.tickets, Ordering::Relaxed);
        }
    }

    /// The queue for its next statement. Only for the owner, once for each statement.
    pub(crate) fn choose_queue(&self) -> Priority {
        let wishes = PriorityWishes::unpack(self.wishes.load(Ordering::Relaxed));
        let tickets = self.tickets_left.load(Ordering::Relaxed);
        let (priority, left) = wishes.queue(self.holds_locks(), tickets);
        self.tickets_left.store(left, Ordering::Relaxed);
        priority
    }

    /// When its transaction began, if that counts against the limit of transactions.
    pub(crate) fn transaction(&self) -> Option<Moment> {
        let begun = Moment(self.transaction_us.load(Ordering::Relaxed));
        (begun != Moment::NEVER).then_some(begun)
    }

    /// See [`Connection::transaction`]. Only for the owner.
    pub(crate) fn set_transaction(&self, begun: Option<Moment>) {
        self.transaction_us.store(begun.unwrap_or(Moment::NEVER).0, Ordering::Relaxed);
    }

    /// Its next statement has been delayed. Only for the owner.
    pub(crate) fn set_delayed(&self) {
        self.was_delayed.store(1, Ordering::Relaxed);
    }

    /// Whether its next statement has been delayed.
    pub(crate) fn was_delayed(&self) -> bool {
        self.was_delayed.load(Ordering::Relaxed) != 0
    }

    /// When its idle time ends, if it is idle now.
    pub fn idle_deadline(&self) -> Moment {
        Moment(self.idle_deadline_us.load(Ordering::Relaxed))
    }

    /// See [`Connection::idle_deadline`]. Only for the owner.
    pub fn set_idle_deadline(&self, at: Moment) {
        self.idle_deadline_us.store(at.0, Ordering::Relaxed);
    }

    /// When the warden will look at it next.
    pub fn timer_at(&self) -> Moment {
        Moment(self.timer_at_us.load(Ordering::Relaxed))
    }

    /// See [`Connection::timer_at`]. Only under the timers' lock.
    pub fn set_timer_at(&self, at: Moment) {
        self.timer_at_us.store(at.0, Ordering::Relaxed);
    }
}
