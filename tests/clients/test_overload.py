"""Many more statements that use the processor than processors."""

import time

from harness import ServerTest, Target

LONG_STATEMENT = "SELECT BENCHMARK(1000000000000, SHA2('a', 256))"
ANSWER_SECONDS = 15


class Overload(ServerTest):
    """Short statements of others are answered, and nothing that was sent stays in a queue for good."""

    def check(self, long_statements):
        asker = self.connect(Target.tcp(), timeout=ANSWER_SECONDS)
        long = [self.connect(Target.unix()) for _ in range(long_statements)]
        for connection in long:
            connection.send_query(LONG_STATEMENT)
        slowest = 0
        for number in range(20):
            start = time.monotonic()
            self.assertEqual(asker.value(f"SELECT {number}"), str(number))
            slowest = max(slowest, time.monotonic() - start)
            time.sleep(0.05)
        print(f"    slowest answer among {long_statements} long statements: {slowest * 1000:.0f} ms", flush=True)
        for connection in long:
            self.control.query(f"KILL {connection.thread_id}")

    def test_10(self):
        self.check(10)

    def test_40(self):
        self.check(40)

    def test_80(self):
        self.check(80)


class CheapCommands(ServerTest):
    """Commands that monitoring and connection pools send don't queue behind statements."""

    SECONDS = 0.5

    def test_under_saturation(self):
        commands = {
            "ping": lambda session: session.ping(),
            "reset connection": lambda session: session.reset(),
        }
        heavy = [self.connect(Target.unix()) for _ in range(60)]
        sessions = [self.connect(Target.unix(), timeout=ANSWER_SECONDS) for _ in range(10)]
        for connection in heavy:
            connection.send_query(LONG_STATEMENT)
        for name, command in commands.items():
            seconds = []
            for session in sessions:
                start = time.monotonic()
                command(session)
                seconds.append(time.monotonic() - start)
            print(f"    {name}: {max(seconds) * 1000:.1f} ms at most", flush=True)
            self.assertLess(max(seconds), self.SECONDS)
        quitters = [self.connect(Target.unix()) for _ in range(10)]
        for connection in heavy:
            self.control.query(f"KILL {connection.thread_id}")
        for session in quitters:
            session.quit()
