"""What connections cost that do nothing."""

import pathlib
import re
import time

from harness import ServerTest, Target, wait_until

SECONDS = 3
WAKE_UPS_PER_SECOND = 2


def pool_threads():
    """Folders in /proc of the pool's threads."""
    for task in pathlib.Path(f"/proc/{Target.pid}/task").iterdir():
        if (task / "comm").read_text(encoding="ascii").startswith("tp_"):
            yield task


def switches():
    """Context switches of each of the pool's threads: a wake-up ends with one."""
    counts = {}
    for task in pool_threads():
        status = (task / "status").read_text(encoding="ascii")
        counts[task.name] = sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", status)))
    return counts


class Idle(ServerTest):
    """Nobody works. The control session rests during the measurement as well."""

    def check(self, sessions):
        if Target.pid is None or not list(pool_threads()):
            self.skipTest("needs --pid and a pool")
        for _ in range(sessions):
            self.connect(Target.unix())
        # What the logins needed retires within a few seconds, and the pool then comes to rest.
        wait_until(lambda: self.wake_ups(1) <= WAKE_UPS_PER_SECOND, "the pool comes to rest")
        wake_ups = self.wake_ups(SECONDS)
        print(f"    {wake_ups} wake-ups in {SECONDS} s with {sessions} idle sessions", flush=True)
        self.assertLessEqual(wake_ups, SECONDS * WAKE_UPS_PER_SECOND)

    @staticmethod
    def wake_ups(seconds):
        before = switches()
        time.sleep(seconds)
        return sum(count - before.get(thread, 0) for thread, count in switches().items())

    def test_no_session(self):
        self.check(0)

    def test_100_sessions(self):
        self.check(100)
