//! Which queue a session's statement goes into: what its session variables say. Pure.

/// Which queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Sessions that hold locks, since finishing them frees others, and cheap commands. They may
    /// run beyond the limit.
    High,
    /// Sessions whose user wants them to go before others. They may not.
    Preferred,
    /// Everything else.
    Low,
}

/// `thread_pool_priority`, in the order of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionPriority {
    /// The high-priority queue.
    High,
    /// The low-priority queue, also inside a transaction.
    Low,
    /// What the other variables say.
    #[default]
    Auto,
}

/// `thread_pool_high_prio_mode`, in the order of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HighPrioMode {
    /// Statements of sessions that hold locks go into the high-priority queue.
    #[default]
    Transactions,
    /// All statements do.
    Statements,
    /// None does.
    Nothing,
}

/// The session variables that decide about the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityWishes {
    /// `thread_pool_priority`.
    pub priority: SessionPriority,
    /// `thread_pool_high_priority_connection`.
    pub is_high_priority: bool,
    /// `thread_pool_high_prio_mode`.
    pub mode: HighPrioMode,
    /// `thread_pool_high_prio_tickets`.
    pub tickets: u32,
}

impl Default for PriorityWishes {
    fn default() -> Self {
        Self {
            priority: SessionPriority::default(),
            is_high_priority: false,
            mode: HighPrioMode::default(),
            tickets: u32::MAX,
        }
    }
}

impl PriorityWishes {
    /// The queue for the next statement of a session that has `tickets_left`, and how many are
    /// left afterwards.
    pub fn queue(self, holds_locks: bool, tickets_left: u32) -> (Priority, u32) {
        let preferred = if holds_locks { Priority::High } else { Priority::Preferred };
        match (self.priority, self.mode) {
            (SessionPriority::High, _) => (preferred, tickets_left),
            (SessionPriority::Low, _) => (Priority::Low, tickets_left),
            _ if self.is_high_priority => (preferred, tickets_left),
            (_, HighPrioMode::Statements) => (preferred, tickets_left),
            (_, HighPrioMode::Transactions) if holds_locks && tickets_left > 0 => {
                (Priority::High, tickets_left - 1)
            }
            _ => (Priority::Low, self.tickets),
        }
    }

    /// Puts the wishes into one word: `tickets (32) | mode (2) | priority (2) | is_high_priority`.
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.tickets) << 32
            | (self.mode as u64) << 3
            | (self.priority as u64) << 1
            | u64::from(self.is_high_priority)
    }

    /// Undoes `pack`.
    pub(crate) fn unpack(word: u64) -> Self {
        Self {
            priority: SessionPriority::from_number((word >> 1) as u32 & 3),
            is_high_priority: word & 1 != 0,
            mode: HighPrioMode::from_number((word >> 3) as u32 & 3),
            tickets: (word >> 32) as u32,
        }
    }
}

impl SessionPriority {
    /// The value of the system variable as a number.
    pub fn from_number(number: u32) -> Self {
        match number {
            0 => Self::High,
            1 => Self::Low,
            _ => Self::Auto,
        }
    }
}

impl HighPrioMode {
    /// The value of the system variable as a number.
    pub fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Statements,
            2 => Self::Nothing,
            _ => Self::Transactions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: PriorityWishes = PriorityWishes {
        priority: SessionPriority::Auto,
        is_high_priority: false,
        mode: HighPrioMode::Transactions,
        tickets: u32::MAX,
    };

    fn queue(wishes: PriorityWishes, holds_locks: bool) -> Priority {
        wishes.queue(holds_locks, wishes.tickets).0
    }

    #[test]
    fn by_default_those_who_hold_locks_go_first() {
        assert_eq!(PriorityWishes::default(), AUTO);
        assert_eq!(queue(AUTO, true), Priority::High);
        assert_eq!(queue(AUTO, false), Priority::Low);
    }

    #[test]
    fn the_most_explicit_wish_decides() {
        let high = PriorityWishes { is_high_priority: true, ..AUTO };
        assert_eq!(queue(high, false), Priority::Preferred);
        assert_eq!(queue(high, true), Priority::High);
        let low = PriorityWishes { priority: SessionPriority::Low, ..high };
        assert_eq!(queue(low, true), Priority::Low);
        let nothing = PriorityWishes { mode: HighPrioMode::Nothing, ..AUTO };
        assert_eq!(queue(nothing, true), Priority::Low);
        let high = PriorityWishes { priority: SessionPriority::High, ..nothing };
        assert_eq!(queue(high, false), Priority::Preferred);
        let statements = PriorityWishes { mode: HighPrioMode::Statements, ..AUTO };
        assert_eq!(queue(statements, false), Priority::Preferred);
    }

    #[test]
    fn a_transaction_without_tickets_waits_once_like_all_others() {
        let two = PriorityWishes { tickets: 2, ..AUTO };
        let mut left = 2;
        let mut next = || {
            let (priority, after) = two.queue(true, left);
            left = after;
            priority
        };
        let (high, low) = (Priority::High, Priority::Low);
        assert_eq!([(); 6].map(|()| next()), [high, high, low, high, high, low]);
        assert_eq!(queue(PriorityWishes { tickets: 0, ..AUTO }, true), Priority::Low);
    }

    #[test]
    fn packing_loses_nothing() {
        for number in 0..36 {
            let wishes = PriorityWishes {
                priority: SessionPriority::from_number(number % 3),
                is_high_priority: number % 2 == 1,
                mode: HighPrioMode::from_number(number / 3 % 3),
                tickets: number,
            };
            assert_eq!(PriorityWishes::unpack(wishes.pack()), wishes);
        }
    }
}
