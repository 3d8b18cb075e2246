//! Transactions that may not begin yet: because of `thread_pool_max_transactions_limit`, or for the
//! time of `thread_pool_transaction_delay`. A connection that is held back is in the phase `Queued`
//! like one in a group's queue, but no group sees it and no worker waits with it; so KILL and
//! shutdown find it as they find others.
//!
//! Whether a statement begins a transaction can't be known before it is executed. So each
//! statement of a session that holds no locks counts as the beginning of one, which ends when the
//! session holds no locks after a statement.

use super::Pool;
use crate::conn::{Connection, Owned, command};
use crate::group::Group;
use crate::time::Moment;

impl Pool {
    /// True while something in the settings can hold transactions back.
    pub(crate) fn holds_back(&self) -> bool {
        self.settings.holds_back_transactions()
    }

    /// The connection's next statement is about to be executed. Gives it back if it may be, else
    /// keeps it until it may. Never calls the host.
    pub(crate) fn hold_back(&self, owned: Owned, now: Moment) -> Option<Owned> {
        let connection = self.connections.get(owned.token()).expect("owned connections have slots");
        let group = self.group(connection.group());
        if group.is_admin || connection.holds_locks() || self.is_exempt(group, connection) {
            return Some(owned);
        }
        let owned = self.delay(connection, owned, now)?;
        self.limit(connection, owned, now)
    }

    /// Commands that begin no transaction, where they can be seen.
    fn is_exempt(&self, group: &Group, connection: &Connection) -> bool {
        connection.is_plain()
            && group.poller.next_command(connection.fd()).is_some_and(command::is_cheap)
    }

    /// Keeps a connection that hasn't been delayed yet.
    fn delay(&self, connection: &Connection, owned: Owned, now: Moment) -> Option<Owned> {
        let delay = self.settings.transaction_delay();
        let was_delayed = connection.was_delayed() || connection.transaction().is_some();
        if was_delayed || delay.0 == 0 {
            return Some(owned);
        }
        let (is_first, killed) = {
            let mut delayed = self.delayed.lock();
            connection.stats().is_held_back(now);
            let (token, marks) = connection.hand_to_queue(owned);
            (delayed.add(now + delay, token), marks.killed.then_some(token))
        };
        self.dispose_of_killed(killed, now);
        if self.settings.transaction_delay() != delay {
            // Whoever changed it has ended all delays, perhaps just before this one began.
            self.end_delays(Moment::NEVER, now);
        } else if is_first {
            self.warden.kick();
        }
        None
    }

    /// Keeps a connection that would begin a transaction beyond the limit.
    fn limit(&self, connection: &Connection, owned: Owned, now: Moment) -> Option<Owned> {
        let Some(limit) = self.settings.transactions_limit() else { return Some(owned) };
        if connection.transaction().is_some() {
            return Some(owned);
        }
        let longest = self.settings.longrun_trx_limit();
        let killed = {
            let mut transactions = self.transactions.lock();
            transactions.forgive_old(now, longest);
            if transactions.enter(owned.token(), now, limit) {
                connection.set_transaction(Some(now));
                return Some(owned);
            }
            connection.stats().is_held_back(now);
            // Handed over first, so that whoever takes it off the list can claim it.
            let (token, marks) = connection.hand_to_queue(owned);
            transactions.wait(token);
            marks.killed.then_some(token)
        };
        self.dispose_of_killed(killed, now);
        // Old transactions may have made room for several, and the limit may have been changed.
        self.begin_waiting_transactions(now);
        // It sleeps until the oldest transaction is too old to count.
        self.warden.kick();
        None
    }

    /// A connection no longer is in a transaction, or ends.
    pub(crate) fn transaction_ended(&self, owned: &Owned, now: Moment) {
        let connection = self.connections.get(owned.token()).expect("owned connections have slots");
        let Some(begun) = connection.transaction() else { return };
        connection.set_transaction(None);
        self.transactions.lock().leave(owned.token(), begun);
        self.begin_waiting_transactions(now);
    }

    /// Queues the connections that may begin a transaction now.
    pub(crate) fn begin_waiting_transactions(&self, now: Moment) {
        let limit = self.settings.transactions_limit().unwrap_or(usize::MAX);
        let longest = self.settings.longrun_trx_limit();
        let next = || {
            let mut transactions = self.transactions.lock();
            transactions.forgive_old(now, longest);
            transactions.next(now, limit)
        };
        let mut released = false;
        while let Some(token) = next() {
            let Some(connection) = self.connections.get(token) else { continue };
            match connection.claim_queued(token) {
                Some((owned, _)) => {
                    connection.set_transaction(Some(now));
                    self.enqueue_quietly(self.group(connection.group()), owned, now);
                    released = true;
                }
                // Killed meanwhile.
                None => self.transactions.lock().leave(token, now),
            }
        }
        self.dispatch_released(released);
    }

    /// Wakes workers for connections that were queued together: as many as may run, not one for
    /// each connection.
    fn dispatch_released(&self, released: bool) {
        if released {
            self.credits_freed(self.turn_rotor());
        }
    }

    /// Queues the connections whose delay ends at `due` or before: now, or [`Moment::NEVER`] for
    /// all of them.
    pub(crate) fn end_delays(&self, due: Moment, now: Moment) {
        let next = || self.delayed.lock().pop_due(due);
        let mut released = false;
        while let Some((_, token)) = next() {
            let Some(connection) = self.connections.get(token) else { continue };
            if let Some((owned, _)) = connection.claim_queued(token) {
                connection.set_delayed();
                self.enqueue_quietly(self.group(connection.group()), owned, now);
                released = true;
            }
        }
        self.dispatch_released(released);
    }

    /// When the warden must look at what is held back.
    pub(crate) fn next_release_at(&self) -> Option<Moment> {
        let delayed = self.delayed.lock().next();
        let longest = self.settings.longrun_trx_limit();
        let forgiven = self.transactions.lock().next_forgiven_at(longest);
        [delayed, forgiven].into_iter().flatten().min()
    }
}
