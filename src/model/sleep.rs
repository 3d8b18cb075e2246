//! Threads that go to sleep while something comes up for them.

use super::*;
use crate::warden::{self, Warden};
use crate::worker::{Done, Want};
use loom::thread;

/// After this time without work a worker may retire.
const LATER: Moment = Moment(60_000_000);
/// So long after its last sign of saturation the warden has stopped watching a pool.
const UNSATURATED: Moment = Moment(100_000);

#[test]
fn a_worker_that_parks_sees_a_credit_that_is_given_back() {
    check(|| {
        let world = World::new();
        let owned = world.connection();
        assert!(world.pool.credits.try_acquire(), "somebody else runs");
        world.pool.enqueue(world.pool.group(0), owned, Moment(1));
        let World { pool, mut worker, unparked, .. } = world;
        let other = thread::spawn(move || {
            pool.credits.release();
            pool.credits_freed(0);
        });
        let want = worker.step(Moment(1), Done::Started);
        other.join().unwrap();
        let served = matches!(want, Want::Execute(_));
        assert!(served || unparked.is_set(), "{want:?} and nobody wakes it");
    });
}

#[test]
fn a_worker_that_starts_to_poll_sees_work_that_is_queued() {
    check(|| {
        let world = World::new();
        let owned = world.connection();
        let World { pool, mut worker, notified, .. } = world;
        let other = thread::spawn(move || pool.enqueue(pool.group(0), owned, Moment(1)));
        let want = worker.step(Moment(1), Done::Started);
        other.join().unwrap();
        let served = matches!(want, Want::Execute(_));
        assert!(served || notified.is_set(), "{want:?} and nobody wakes it");
    });
}

#[test]
fn the_last_worker_parks_while_work_is_queued_and_the_credit_is_given_back() {
    check(|| {
        let world = World::new();
        let owned = world.connection();
        assert!(world.pool.credits.try_acquire(), "somebody else runs");
        let World { pool, mut worker, unparked, notified, kicked, .. } = world;
        let queues = Arc::clone(&pool);
        let queues = thread::spawn(move || queues.enqueue(queues.group(0), owned, Moment(1)));
        let ends = thread::spawn(move || {
            pool.credits.release();
            pool.credits_freed(0);
        });
        let want = worker.step(Moment(1), Done::Started);
        queues.join().unwrap();
        ends.join().unwrap();
        let comes = match &want {
            Want::Execute(_) => true,
            Want::Poll { .. } => notified.is_set(),
            _ => unparked.is_set(),
        };
        assert!(comes || kicked.is_set(), "{want:?} and nobody wakes it");
    });
}

#[test]
fn of_two_workers_that_retire_one_stays_for_work_that_is_queued() {
    check(|| {
        let world = World::new();
        let owned = world.connection();
        let World { pool, mut worker, notified, kicked, .. } = world;
        let (mut second, _, _) = World::another_worker(&pool);
        assert!(matches!(worker.step(Moment(1), Done::Started), Want::Poll { .. }));
        assert!(matches!(second.step(Moment(1), Done::Started), Want::Poll { .. }));
        let retires = thread::spawn(move || second.step(LATER, Done::Polled));
        let queues = thread::spawn(move || pool.enqueue(pool.group(0), owned, LATER));
        let wants = [worker.step(LATER, Done::Polled), retires.join().unwrap()];
        queues.join().unwrap();
        assert!(wants.iter().any(|want| !matches!(want, Want::Exit)), "both have retired");
        let served = wants.iter().any(|want| matches!(want, Want::Execute(_)));
        let polled = wants.iter().any(|want| matches!(want, Want::Poll { .. }));
        assert!(served || polled && notified.is_set() || kicked.is_set(), "{wants:?}");
    });
}

#[test]
fn a_warden_that_goes_to_sleep_sees_work_without_a_worker() {
    check(|| {
        let world = World::new();
        let owned = world.connection();
        let World { pool, kicked, .. } = world;
        // The worker that the world has is somewhere else for long.
        pool.group(0).counters.starting.store(0, crate::sync::Ordering::SeqCst);
        let mut warden = Warden::new(Arc::clone(&pool));
        // A group with connections is hungry by itself.
        pool.group(0).counters.connections.store(0, crate::sync::Ordering::SeqCst);
        // It has been kicked before, and is awake because of that.
        pool.warden.kick();
        kicked.0.store(false, Ordering::SeqCst);
        let other = thread::spawn(move || pool.enqueue(pool.group(0), owned, Moment(1)));
        let want = warden.step(Moment(1), warden::Done::Unparked);
        other.join().unwrap();
        let starts = matches!(want, warden::Want::Spawn(Role::Worker, 0));
        assert!(starts || kicked.is_set(), "{want:?} and nobody wakes it");
    });
}

#[test]
fn a_warden_that_goes_to_sleep_sees_that_the_last_credit_was_taken() {
    check(|| {
        let World { pool, kicked, .. } = World::new();
        let mut warden = Warden::new(Arc::clone(&pool));
        // It has watched a saturated pool, and is about to stop that.
        assert!(pool.credits.try_acquire());
        warden.step(Moment(1), warden::Done::Unparked);
        pool.credits.release();
        kicked.0.store(false, Ordering::SeqCst);
        let other = thread::spawn(move || {
            assert!(pool.credits.try_acquire());
            pool.warden.note_admission(&pool.credits);
        });
        let want = warden.step(UNSATURATED, warden::Done::Unparked);
        other.join().unwrap();
        let watches = matches!(want, warden::Want::Park { timeout: Some(Micros(..=2_000)) });
        assert!(watches || kicked.is_set(), "{want:?} and nobody wakes it");
    });
}

#[test]
fn an_unpark_at_any_moment_ends_a_park_and_shows_what_came_before_it() {
    check(|| {
        let parker = Arc::new(crate::sync::Parker::default());
        let value = Arc::new(crate::sync::AtomicU32::new(0));
        let (other, written) = (Arc::clone(&parker), Arc::clone(&value));
        let thread = thread::spawn(move || {
            written.store(1, crate::sync::Ordering::Relaxed);
            other.unpark();
            other.unpark();
        });
        // loom reports a thread that sleeps for ever.
        parker.park(None);
        assert_eq!(value.load(crate::sync::Ordering::Relaxed), 1);
        thread.join().unwrap();
    });
}
