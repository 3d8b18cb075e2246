//! The pool's threads: which exist, which have ended.

use crate::host::Thread;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::worker::WorkerShared;
use crossbeam_queue::SegQueue;
use std::collections::HashMap;
use std::sync::Arc;

/// Name of a thread in the pool.
pub type ThreadId = u64;

/// See the module.
#[derive(Default)]
pub struct Threads {
    workers: Mutex<Vec<Arc<WorkerShared>>>,
    handles: Mutex<HashMap<ThreadId, Thread>>,
    /// Threads that are about to end, in that order; the warden joins them.
    finished: SegQueue<ThreadId>,
    /// The next name. Only uniqueness matters, so Relaxed.
    next: AtomicU64,
}

impl Threads {
    pub(crate) fn new_id(&self) -> ThreadId {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn add(&self, id: ThreadId, thread: Thread) {
        self.handles.lock().insert(id, thread);
    }

    pub(crate) fn finish(&self, id: ThreadId) {
        self.finished.push(id);
    }

    pub(crate) fn add_worker(&self, worker: Arc<WorkerShared>) {
        self.workers.lock().push(worker);
    }

    pub(crate) fn remove_worker(&self, worker: &Arc<WorkerShared>) {
        self.workers.lock().retain(|w| !Arc::ptr_eq(w, worker));
    }

    /// Calls `f` for each worker, under the lock of the list.
    pub(crate) fn for_each_worker(&self, f: impl FnMut(&Arc<WorkerShared>)) {
        self.workers.lock().iter().for_each(f);
    }

    /// A thread that has ended and hasn't been joined.
    pub(crate) fn take_finished(&self) -> Option<Thread> {
        let id = self.finished.pop()?;
        let thread = self.handles.lock().remove(&id);
        if thread.is_none() {
            // It ended before its starter could enter it here; the starter is about to.
            self.finished.push(id);
        }
        thread
    }

    /// All threads that haven't been joined.
    pub(crate) fn take_all(&self) -> Vec<Thread> {
        while self.finished.pop().is_some() {}
        self.handles.lock().drain().map(|(_, thread)| thread).collect()
    }

    /// Number of threads that haven't been joined.
    pub fn len(&self) -> usize {
        self.handles.lock().len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
