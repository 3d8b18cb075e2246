//! Which threads there are, their numbers, and what those counted that have ended.

use super::thread::{Counters, ThreadStats};
use crate::group::GroupId;
use crate::worker::WorkerShared;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A thread of the pool that shows in the tables.
#[derive(Clone)]
pub enum Member {
    /// A worker.
    Worker(Arc<WorkerShared>),
    /// A login thread.
    Login(Arc<ThreadStats>),
}

impl Member {
    /// Its numbers.
    pub fn stats(&self) -> &ThreadStats {
        match self {
            Self::Worker(worker) => &worker.stats,
            Self::Login(stats) => stats,
        }
    }
}

/// The threads of one group.
#[derive(Default)]
struct Members {
    /// The thread with number n is at n − 1.
    present: Vec<Option<Member>>,
    /// Sums of those that have ended.
    ended: Counters<u64>,
}

/// See the module. Its lock is taken when a thread starts or ends, and by readers of tables.
#[derive(Default)]
pub struct Registry {
    groups: Mutex<Vec<Members>>,
    /// Uses of the deprecated tables of the information schema.
    deprecated_table_uses: AtomicU64,
}

impl Registry {
    /// Enters a thread, which gets the lowest free number of its group.
    pub(crate) fn enter(self: &Arc<Self>, member: Member) -> ThreadEntry {
        let group = member.stats().group;
        let mut groups = self.groups.lock();
        if groups.len() <= group as usize {
            groups.resize_with(group as usize + 1, Members::default);
        }
        let present = &mut groups[group as usize].present;
        let free = present.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            present.push(None);
            present.len() - 1
        });
        let number = index as u32 + 1;
        member.stats().set_number(number);
        present[index] = Some(member);
        ThreadEntry { registry: Arc::clone(self), group, number }
    }

    /// All threads, in the order of their groups and numbers.
    pub fn members(&self) -> Vec<Member> {
        let groups = self.groups.lock();
        groups.iter().flat_map(|group| group.present.iter().flatten()).cloned().collect()
    }

    /// What the threads of each group have counted, those included that have ended.
    pub fn totals(&self, groups: usize) -> Vec<Counters<u64>> {
        let total = |group: &Members| {
            let mut total = group.ended.clone();
            let present = group.present.iter().flatten();
            present.for_each(|member| total.add(&member.stats().counters()));
            total
        };
        let mut totals: Vec<_> = self.groups.lock().iter().map(total).collect();
        totals.resize_with(groups, Counters::default);
        totals
    }

    /// Somebody has used a deprecated table.
    pub(crate) fn note_deprecated_table(&self) {
        self.deprecated_table_uses.fetch_add(1, Relaxed);
    }

    /// How often somebody has.
    pub fn deprecated_table_uses(&self) -> u64 {
        self.deprecated_table_uses.load(Relaxed)
    }

    fn leave(&self, group: GroupId, number: u32) {
        let group = &mut self.groups.lock()[group as usize];
        if let Some(member) = group.present[number as usize - 1].take() {
            group.ended.add(&member.stats().counters());
        }
    }
}

/// A thread is in the registry for as long as this lives.
pub struct ThreadEntry {
    registry: Arc<Registry>,
    group: GroupId,
    number: u32,
}

impl Drop for ThreadEntry {
    fn drop(&mut self) {
        self.registry.leave(self.group, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ThreadKind, WaitKind};
    use super::*;

    fn login(group: GroupId) -> Arc<ThreadStats> {
        Arc::new(ThreadStats::new(ThreadKind::Login, group))
    }

    #[test]
    fn each_groups_numbers_start_at_1_and_are_used_again() {
        let registry = Arc::new(Registry::default());
        let (a, b, c) = (login(0), login(0), login(0));
        let first = registry.enter(Member::Login(Arc::clone(&a)));
        let _second = registry.enter(Member::Login(Arc::clone(&b)));
        assert_eq!((a.number(), b.number()), (1, 2));
        drop(first);
        let _third = registry.enter(Member::Login(Arc::clone(&c)));
        assert_eq!(c.number(), 1);
        let other = login(1);
        let _fourth = registry.enter(Member::Login(Arc::clone(&other)));
        assert_eq!(other.number(), 1);
        assert_eq!(registry.members().len(), 3);
    }

    #[test]
    fn what_a_thread_counted_stays_after_its_end() {
        let registry = Arc::new(Registry::default());
        let stats = login(1);
        let entry = registry.enter(Member::Login(Arc::clone(&stats)));
        stats.wait_begins(WaitKind::Sleep);
        let before = registry.totals(2);
        assert_eq!(before[1].waits[WaitKind::Sleep as usize], 1);
        assert_eq!(before[0], Counters::default());
        drop(entry);
        assert_eq!(registry.totals(2), before);
    }
}
