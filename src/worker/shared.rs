//! What others may know of a worker.

use crate::admission::CreditSlot;
use crate::group::GroupId;
use crate::stats::{ThreadKind, ThreadStats};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, Park, Watched};
use crate::time::Moment;
use std::sync::Arc;

/// See the module.
pub struct WorkerShared {
    /// Its group.
    pub group: GroupId,
    /// Where it sleeps.
    pub parker: Arc<dyn Park>,
    /// Its credit.
    pub credit: CreditSlot,
    /// Lets the warden see whether it sleeps.
    pub(crate) watched: Watched,
    /// It lent its credit for a wait for input or output. Only its own thread uses it.
    pub(crate) lent_for_io: AtomicBool,
    /// When its present statement began; 0 between statements. Written by the worker, read by the
    /// warden; Relaxed, since a stale value only moves the detection of a stall by one look.
    started_us: AtomicU64,
    /// Nesting of reported waits. Only its own thread uses it.
    wait_depth: AtomicU32,
    /// What the tables show of it.
    pub stats: ThreadStats,
}

impl WorkerShared {
    /// A worker of `group`.
    pub fn new(group: GroupId, parker: Arc<dyn Park>) -> Self {
        Self {
            group,
            parker,
            credit: CreditSlot::default(),
            watched: Watched::default(),
            lent_for_io: AtomicBool::new(false),
            started_us: AtomicU64::new(0),
            wait_depth: AtomicU32::new(0),
            stats: ThreadStats::new(ThreadKind::Worker, group),
        }
    }

    /// True for the outermost of nested waits.
    pub(crate) fn enter_wait(&self) -> bool {
        let depth = self.wait_depth.load(Ordering::Relaxed);
        self.wait_depth.store(depth + 1, Ordering::Relaxed);
        depth == 0
    }

    /// True when the outermost wait ends. An end without a begin is ignored.
    pub(crate) fn leave_wait(&self) -> bool {
        let depth = self.wait_depth.load(Ordering::Relaxed);
        self.wait_depth.store(depth.saturating_sub(1), Ordering::Relaxed);
        depth == 1
    }

    /// When the statement that executes now began.
    pub fn statement_started(&self) -> Option<Moment> {
        match self.started_us.load(Ordering::Relaxed) {
            0 => None,
            at => Some(Moment(at)),
        }
    }

    pub(super) fn set_statement_started(&self, at: Option<Moment>) {
        self.started_us.store(at.map_or(0, |moment| moment.0), Ordering::Relaxed);
    }
}
