//! Shutdown while others come or go to sleep.

use super::*;
use crate::login::{self, Login};
use crate::worker::{Done, Want};
use loom::thread;

#[test]
fn a_channel_that_comes_during_shutdown_is_logged_in_or_turned_away_once() {
    check(|| {
        let World { pool, host, .. } = World::new();
        let unparked = Arc::new(Flag::default());
        let mut login = Login::new(Arc::clone(&pool), Arc::clone(&unparked) as Arc<dyn Park>);
        pool.count_new_thread(Role::Login, 0);
        let accepts = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.add_connection(Channel::from_raw(7), false))
        };
        let stops = thread::spawn(move || pool.shutdown());
        let mut want = login.step(Moment(1), login::Done::Started);
        let handed_back = accepts.join().unwrap().is_err();
        stops.join().unwrap();
        if matches!(want, login::Want::Park { .. }) {
            assert!(unparked.is_set(), "nobody wakes the login thread");
            want = login.step(Moment(1), login::Done::Unparked);
        }
        let logged_in = matches!(want, login::Want::Open { .. });
        let ends = usize::from(logged_in) + usize::from(handed_back);
        assert_eq!(ends + host.rejected.load(Ordering::SeqCst), 1, "{want:?}");
    });
}

#[test]
fn a_worker_that_parks_sees_that_the_pool_stops() {
    check(|| {
        let World { pool, mut worker, unparked, .. } = World::new();
        assert!(pool.credits.try_acquire(), "somebody else runs");
        let stops = thread::spawn(move || pool.shutdown());
        let want = worker.step(Moment(1), Done::Started);
        stops.join().unwrap();
        assert!(matches!(want, Want::Exit) || unparked.is_set(), "{want:?} and nobody wakes it");
    });
}

#[test]
fn workers_that_poll_pass_on_that_the_pool_stops() {
    check(|| {
        let World { pool, mut worker, notified, .. } = World::new();
        let stops = thread::spawn(move || pool.shutdown());
        let want = worker.step(Moment(1), Done::Started);
        stops.join().unwrap();
        assert!(notified.is_set(), "{want:?}");
        if matches!(want, Want::Poll { .. }) {
            // One notification wakes one worker.
            notified.0.store(false, Ordering::SeqCst);
            assert!(matches!(worker.step(Moment(1), Done::Polled), Want::Exit));
            assert!(notified.is_set(), "the next one must be woken");
        }
    });
}
