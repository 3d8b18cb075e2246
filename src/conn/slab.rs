//! The table of connections. Slots are made in chunks on first use and never move or go away, so
//! a token can be looked up by any thread at any time without a lock.

use super::{Connection, Look, Owned, Token};
use crate::host::Session;
use crate::sync::Mutex;
use once_cell::sync::OnceCell;

// A model checker tracks every atomic, so its table is tiny.
const CHUNK: usize = if cfg!(loom) { 2 } else { 1024 };
const CHUNKS: usize = 128;

/// Most connections at one time; above the server's own bound for `max_connections` (100,000).
pub const MAX_CONNECTIONS: usize = CHUNK * CHUNKS;

/// See the module.
pub struct Slab {
    chunks: Box<[OnceCell<Box<[Connection]>>]>,
    free: Mutex<FreeList>,
}

struct FreeList {
    /// Slots that have been used before, last one first: their memory is warm.
    indices: Vec<u32>,
    /// Slots from here on have never been used.
    untouched: u32,
}

impl Default for Slab {
    fn default() -> Self {
        Self {
            chunks: (0..CHUNKS).map(|_| OnceCell::new()).collect(),
            free: Mutex::new(FreeList { indices: Vec::new(), untouched: 0 }),
        }
    }
}

impl Slab {
    /// Takes a slot for a new session; hands the session back when all [`MAX_CONNECTIONS`] slots
    /// are in use.
    pub fn open(&self, session: Session, fd: i32, group: u32) -> Result<Owned, Session> {
        let index = {
            let mut free = self.free.lock();
            match free.indices.pop() {
                Some(index) => index,
                None if (free.untouched as usize) < MAX_CONNECTIONS => {
                    free.untouched += 1;
                    free.untouched - 1
                }
                None => return Err(session),
            }
        };
        let chunk = self.chunks[index as usize / CHUNK]
            .get_or_init(|| (0..CHUNK).map(|_| Connection::new()).collect());
        Ok(chunk[index as usize % CHUNK].open(index, session, fd, group))
    }

    /// Ends the connection's life in the table and returns its session. From now on its token
    /// names nothing.
    pub fn close(&self, owned: Owned) -> Session {
        let index = owned.token().index();
        let session = self.slot(index).expect("an owned connection has a slot").close(owned);
        self.free.lock().indices.push(index);
        session
    }

    /// The slot that a token names; `None` for a number that was never a token. The slot may
    /// have a later life by now: all its operations check the generation.
    pub fn get(&self, token: Token) -> Option<&Connection> {
        self.slot(token.index())
    }

    fn slot(&self, index: u32) -> Option<&Connection> {
        let chunk = self.chunks.get(index as usize / CHUNK)?.get()?;
        chunk.get(index as usize % CHUNK)
    }

    /// The connections at this moment.
    #[cfg(feature = "sim")]
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        let chunks = self.chunks.iter().filter_map(|chunk| chunk.get());
        let slots = chunks.flat_map(|chunk| chunk.iter()).zip(0..);
        slots.filter_map(|(slot, index)| slot.token(index))
    }

    /// Number of slots in use.
    pub fn len(&self) -> usize {
        let free = self.free.lock();
        free.untouched as usize - free.indices.len()
    }

    /// True if no slot is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `f` with the index and a look at each connection, in the order of the slots.
    pub fn for_each(&self, mut f: impl FnMut(u32, Look)) {
        for (number, chunk) in self.chunks.iter().enumerate() {
            let Some(chunk) = chunk.get() else { continue };
            for (offset, connection) in chunk.iter().enumerate() {
                if let Some(look) = connection.look() {
                    f((number * CHUNK + offset) as u32, look);
                }
            }
        }
    }

    /// Hands the sessions that are left to `dispose`. Only when no thread of the pool runs any
    /// more; the slots aren't used again.
    pub fn drain(&self, mut dispose: impl FnMut(Session)) {
        let slots = self.chunks.iter().filter_map(|chunk| chunk.get()).flat_map(|c| c.iter());
        slots.filter_map(Connection::evict).for_each(&mut dispose);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{Marks, Phase};
    use super::*;
    use crate::host::ConnectionKind;
    use crate::time::Moment;

    fn open(slab: &Slab) -> Owned {
        slab.open(Session::from_raw(7), 3, 0).unwrap()
    }

    #[test]
    fn a_token_of_a_former_life_names_nothing() {
        let slab = Slab::default();
        let first = open(&slab);
        let token = first.token();
        assert_eq!(slab.close(first).as_raw(), 7);
        let second = open(&slab);
        assert_eq!(second.token().index(), token.index(), "the slot is used again");
        let slot = slab.get(token).unwrap();
        assert!(!slot.names(token));
        assert!(!slot.kill(token), "a late kill does nothing");
        assert!(!slot.expire(token));
        assert!(slot.claim_armed(token).is_none());
        assert!(slab.get(Token::from_raw(u64::MAX)).is_none());
        slab.close(second);
        assert!(slab.is_empty());
    }

    #[test]
    fn event_kill_and_timeout_of_an_idle_connection_have_one_winner() {
        let slab = Slab::default();
        let owned = open(&slab);
        let token = owned.token();
        let slot = slab.get(token).unwrap();
        slot.hand_to_poller(&owned);
        assert!(slot.expire(token));
        assert!(slot.claim_armed(token).is_none(), "the timeout was first");
        assert!(slot.kill(token), "a queued one gets an entry in the admin group");
        assert!(!slot.kill(token), "but only once");
        let (owned, marks) = slot.claim_queued(token).unwrap();
        assert_eq!(marks, Marks { killed: true, expired: true, doubtful: false });
        assert!(slot.claim_queued(token).is_none(), "the second entry is stale");
        slab.close(owned);
    }

    #[test]
    fn after_a_forgiven_timeout_events_are_doubtful() {
        let slab = Slab::default();
        let owned = open(&slab);
        let token = owned.token();
        let slot = slab.get(token).unwrap();
        slot.hand_to_poller(&owned);
        assert!(slot.expire(token));
        let (owned, _) = slot.claim_queued(token).unwrap();
        slot.forgive_expiry(&owned);
        slot.hand_to_poller(&owned);
        let (owned, marks) = slot.claim_armed(token).unwrap();
        assert_eq!(marks, Marks { doubtful: true, ..Marks::default() });
        slab.close(owned);
    }

    #[test]
    fn a_look_sees_the_living_and_nothing_of_former_lives() {
        let slab = Slab::default();
        let first = open(&slab);
        let second = open(&slab);
        let stats = slab.get(first.token()).unwrap().stats();
        stats.opens(11, ConnectionKind::User, 1, Moment(5));
        stats.turn_begins((0, 1), Moment(6));
        let seen = |slab: &Slab| {
            let mut seen = vec![];
            slab.for_each(|index, look| seen.push((index, look.numbers.id, look.phase)));
            seen
        };
        assert_eq!(seen(&slab), [(0, 11, Phase::Owned), (1, 0, Phase::Owned)]);
        slab.close(first);
        assert_eq!(seen(&slab), [(1, 0, Phase::Owned)]);
        let third = open(&slab);
        assert_eq!(seen(&slab).first(), Some(&(0, 0, Phase::Owned)), "the slot is used again");
        slab.close(second);
        slab.close(third);
        assert_eq!(seen(&slab), []);
    }

    #[test]
    fn a_kill_of_a_running_connection_is_only_noted() {
        let slab = Slab::default();
        let owned = open(&slab);
        let token = owned.token();
        let slot = slab.get(token).unwrap();
        assert!(!slot.kill(token));
        assert_eq!(slot.phase(), Phase::Owned);
        let (token, marks) = slot.hand_to_queue(owned);
        assert!(marks.killed, "whoever queues it learns of the kill");
        let (owned, marks) = slot.claim_queued(token).unwrap();
        assert!(marks.killed);
        slab.close(owned);
    }

    #[test]
    fn slots_are_bounded_and_the_session_comes_back() {
        let slab = Slab::default();
        let all: Vec<Owned> = (0..MAX_CONNECTIONS).map(|_| open(&slab)).collect();
        let refused = slab.open(Session::from_raw(9), 3, 0).unwrap_err();
        assert_eq!(refused.as_raw(), 9);
        assert_eq!(slab.len(), MAX_CONNECTIONS);
        for owned in all {
            slab.close(owned);
        }
        assert!(slab.is_empty());
    }
}
