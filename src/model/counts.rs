//! Numbers and words that several threads change: nothing is counted twice, nothing is lost.

use super::*;
use crate::admission::{Credit, Credits};
use crate::stats::WaitKind;
use crate::worker::{Done, Want};
use loom::thread;

#[test]
fn a_credit_has_one_taker_and_none_is_lost() {
    check(|| {
        let credits = Arc::new(Credits::new(1));
        let other = Arc::clone(&credits);
        let takes = move |credits: &Credits| {
            let taken = credits.try_acquire();
            assert!(credits.free() <= 0 || !taken);
            if taken {
                credits.release();
            }
            taken
        };
        let thread = thread::spawn(move || takes(&other));
        let first = takes(&credits);
        let second = thread.join().unwrap();
        assert!(first || second, "somebody gets a free credit");
        assert_eq!(credits.free(), 1);
    });
}

#[test]
fn a_change_of_the_limit_loses_no_credit() {
    check(|| {
        let credits = Arc::new(Credits::new(2));
        assert!(credits.try_acquire());
        let (dba, worker) = (Arc::clone(&credits), Arc::clone(&credits));
        let dba = thread::spawn(move || {
            dba.set_limit(1);
            dba.set_limit(3);
        });
        let worker = thread::spawn(move || worker.release());
        let taken = i64::from(credits.try_acquire());
        dba.join().unwrap();
        worker.join().unwrap();
        assert_eq!((credits.limit(), credits.free()), (3, 3 - taken));
    });
}

#[test]
fn an_event_and_a_kill_of_an_idle_session_have_one_winner() {
    check(|| {
        let world = World::new();
        let owned = world.connection();
        let token = owned.token();
        world.pool.connections.get(token).unwrap().hand_to_poller(&owned);
        let other = Arc::clone(&world.pool);
        let event = thread::spawn(move || {
            other.connections.get(token).unwrap().claim_armed(token).is_some()
        });
        let queued = world.pool.connections.get(token).unwrap().kill(token);
        let claimed = event.join().unwrap();
        assert!(queued != claimed, "queued: {queued}, claimed: {claimed}");
    });
}

#[test]
fn an_event_and_a_timeout_of_an_idle_session_have_one_winner() {
    check(|| {
        let world = World::new();
        let owned = world.connection();
        let token = owned.token();
        world.pool.connections.get(token).unwrap().hand_to_poller(&owned);
        let other = Arc::clone(&world.pool);
        let event = thread::spawn(move || {
            other.connections.get(token).unwrap().claim_armed(token).is_some()
        });
        let expired = world.pool.connections.get(token).unwrap().expire(token);
        let claimed = event.join().unwrap();
        assert!(expired != claimed, "expired: {expired}, claimed: {claimed}");
    });
}

#[test]
fn a_kill_of_a_session_that_is_being_queued_gets_it_to_the_admin_group() {
    check(|| {
        let world = World::new();
        let owned = world.connection();
        let token = owned.token();
        let pool = Arc::clone(&world.pool);
        let queues = thread::spawn(move || pool.enqueue(pool.group(0), owned, Moment(1)));
        world.pool.kill(token);
        queues.join().unwrap();
        let (_, marks) = world.pool.pop(world.pool.admin_group(), Moment(1)).expect("an entry");
        assert!(marks.killed);
    });
}

#[test]
fn a_credit_that_stalls_during_a_wait_is_counted_once() {
    check(|| {
        let world = World::new();
        assert!(world.pool.credits.try_acquire());
        world.shared.credit.replace(Credit::Held);
        let (pool, shared) = (Arc::clone(&world.pool), Arc::clone(&world.shared));
        let warden = thread::spawn(move || pool.take_from_stalled(&shared));
        world.pool.wait_begin(&world.shared, WaitKind::RowLock);
        world.pool.wait_end(&world.shared);
        if world.shared.credit.replace(Credit::None) == Credit::Held {
            world.pool.credits.release();
        }
        warden.join().unwrap();
        assert_eq!(world.pool.credits.free(), 1);
    });
}

#[test]
fn a_sleeper_whose_statement_ends_is_counted_once() {
    check(|| {
        let world = World::new();
        let owned = world.connection();
        world.pool.enqueue(world.pool.group(0), owned, Moment(1));
        let World { pool, mut worker, shared, unparked, .. } = world;
        let Want::Execute(owned) = worker.step(Moment(1), Done::Started) else { panic!("no work") };
        let other = Arc::clone(&pool);
        let warden = thread::spawn(move || {
            other.take_from_sleeper(&shared);
            other.take_from_stalled(&shared);
            other.wake_for(other.group(0));
        });
        let outcome = Outcome { wait_timeout: Micros::from_secs(1), ..Outcome::default() };
        let want = worker.step(Moment(1), Done::Executed(owned, outcome));
        let Want::Await(owned, _) = want else { panic!("{want:?}") };
        let want = worker.step(Moment(1), Done::Awaited(owned, false));
        assert!(matches!(want, Want::Rest(_)), "{want:?}");
        let want = worker.step(Moment(1), Done::Rested);
        warden.join().unwrap();
        assert!(matches!(want, Want::Poll { .. }) || unparked.is_set(), "{want:?}");
        assert_eq!((pool.credits.free(), pool.io_lent()), (1, 0));
    });
}
