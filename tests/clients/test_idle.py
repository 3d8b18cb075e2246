"""What connections cost that do nothing."""

import re
import time

from harness import ServerTest, Target, pool_threads, wait_until

SECONDS = 3
WAKE_UPS_PER_SECOND = 2
PROCESSOR_SHARE = 0.001


def switches():
    """Context switches of each of the pool's threads: a wake-up ends with one."""
    counts = {}
    for task in pool_threads():
        status = (task / "status").read_text(encoding="ascii")
        counts[task.name] = sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", status)))
    return counts


def processor_seconds():
    """Processor time that the pool's threads have used."""
    return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in pool_threads()) / 1e9


class Idle(ServerTest):
    """Nobody works. The control session rests during the measurement as well."""

    needs_pool = True

    def check(self, sessions):
        self.connect_many(sessions)
        # What the logins needed retires within a few seconds, and the pool then comes to rest.
        wait_until(lambda: self.wake_ups(1) <= WAKE_UPS_PER_SECOND, "the pool comes to rest")
        before = processor_seconds()
        wake_ups = self.wake_ups(SECONDS)
        used = (processor_seconds() - before) / SECONDS
        print(f"    {wake_ups} wake-ups and {used:.3%} of a processor in {SECONDS} s with {sessions} idle sessions", flush=True)
        self.assertLessEqual(wake_ups, SECONDS * WAKE_UPS_PER_SECOND)
        self.assertLessEqual(used, PROCESSOR_SHARE)

    @staticmethod
    def wake_ups(seconds):
        before = switches()
        time.sleep(seconds)
        return sum(count - before.get(thread, 0) for thread, count in switches().items())

    def test_no_session(self):
        self.check(0)

    def test_many_sessions(self):
        self.check(Target.sessions)
