"""Many statements at once after a time without any, and what is left of the threads afterwards."""

import selectors
import time

from harness import OwnServerTest, Target, pool_threads, resident_kib, threads, wait_until

RETIRE_SECONDS = 10


class Burst(OwnServerTest):
    """The pool has come to rest before, and idle workers retire after a second instead of 30."""

    options = ("--thread-pool-idle-timeout=1",)

    def answers(self, sessions, statement):
        """Sends everybody's statement at once; returns the seconds until each answer, in order."""
        with selectors.DefaultSelector() as selector:
            for session in sessions:
                selector.register(session.sock, selectors.EVENT_READ, session)
            start = time.monotonic()
            for session in sessions:
                session.send_query(statement)
            seconds = []
            while len(seconds) < len(sessions):
                events = selector.select(30)
                self.assertTrue(events, f"{len(sessions) - len(seconds)} statements aren't answered")
                for key, _ in events:
                    key.data.read_result()
                    selector.unregister(key.fileobj)
                    seconds.append(time.monotonic() - start)
        return seconds

    def test_workers_are_made_as_fast_as_they_are_needed_and_retire_afterwards(self):
        sessions = self.connect_many(Target.crowd)
        self.answers(sessions[:2], "SELECT 1")
        memory, before = resident_kib(Target.pid), threads(Target.pid)
        time.sleep(1)
        sleeping = self.answers(sessions, "SELECT SLEEP(0.05)")
        most = len(pool_threads(("tp_worker",)))
        short = self.answers(sessions, "SELECT 1")
        print(f"    {len(sessions)} statements of 50 ms: {sleeping[-1] * 1000:.0f} ms, {most} workers; of 0 ms: {short[-1] * 1000:.0f} ms", flush=True)
        # A thread takes a tenth of a millisecond; a throttle of one in 50 ms would take minutes.
        self.assertLess(sleeping[-1], 0.05 + len(sessions) * 0.003 + 0.5)
        self.assertLess(short[-1], len(sessions) * 0.002 + 0.5)
        wait_until(lambda: threads(Target.pid) <= before + 4, "the workers retire", RETIRE_SECONDS)
        # Stacks are returned; what the server keeps for statements is not the pool's.
        more = resident_kib(Target.pid) - memory
        print(f"    {more} KiB more memory, {threads(Target.pid) - before} threads more", flush=True)
        self.assertLess(more, 64 * 1024 + 64 * len(sessions))

    def test_at_most_so_many_workers_stay_unused(self):
        """The pool keeps those that may not run now, but not more than thread_pool_max_unused_threads of them."""
        self.set_global("thread_pool_concurrency_limit", 1)
        kept = {}
        for most_unused in (2, 0):
            self.set_global("thread_pool_max_unused_threads", most_unused)
            sessions = self.connect_many(60)
            self.make_table(1)
            holder = self.connect(Target.unix())
            holder.query("BEGIN")
            holder.query("UPDATE test.hot SET n = 1")
            for session in sessions:
                session.send_query("SELECT SUM(id) FROM test.hot FOR UPDATE")
            wait_until(lambda: len(pool_threads(("tp_worker",))) >= 60, "all wait for the row")
            holder.query("COMMIT")
            self.read_from_all(sessions)
            kept[most_unused] = len(pool_threads(("tp_worker",)))
            self.drop_table()
            for session in (*sessions, holder):
                session.close()
        print(f"    workers afterwards by bound: {kept}", flush=True)
        self.assertLess(kept[2], kept[0])
