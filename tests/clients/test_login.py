"""Many logins at once, good and bad."""

import threading

from harness import Counters, ServerTest, Target, status
from mysql_wire import ServerError

CLIENT_THREADS = 32
ROUNDS = 200


class LoginStorm(ServerTest):
    """Connect, ask, quit in many threads; some have a wrong password."""

    def test_storm(self):
        self.control.query("CREATE USER IF NOT EXISTS 'storm' IDENTIFIED BY 'right'")
        self.addCleanup(self.control.query, "DROP USER 'storm'")
        # The first login of an account is a slow one; later ones find it in the server's cache.
        self.connect(Target.unix(), user="storm", password="right").quit()
        self.assert_sessions_gone()
        counters = Counters(self.control)
        connections = status(self.control, "Connections")
        failures, refused = [], []
        rounds = iter(range(ROUNDS))
        lock = threading.Lock()

        def work():
            while True:
                with lock:
                    number = next(rounds, None)
                if number is None:
                    return
                try:
                    self.one_round(number, refused)
                except Exception as failure:  # pylint: disable=broad-except
                    failures.append(f"round {number}: {failure!r}")

        workers = [threading.Thread(target=work) for _ in range(CLIENT_THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        self.assertEqual(failures, [])
        self.assert_sessions_gone()
        self.assertEqual(len(refused), ROUNDS // 5)
        self.assertEqual(counters.moved(), (0, ROUNDS // 5))
        self.assertEqual(status(self.control, "Connections") - connections, ROUNDS)

    @staticmethod
    def one_round(number, refused):
        """Each fifth round has a wrong password."""
        good = number % 5 != 0
        address = Target.tcp() if number % 2 else Target.unix()
        password = "right" if good else "wrong"
        try:
            connection = Target.connect(address, user="storm", password=password, tls=bool(number % 2))
        except ServerError as error:
            assert not good and error.code == 1045, error
            refused.append(number)
            return
        assert good, "a wrong password was accepted"
        assert connection.value(f"SELECT {number}") == str(number)
        connection.quit()

    def test_logins_while_the_server_is_busy(self):
        """Statements that use the processor don't keep anybody from logging in."""
        busy = [self.connect(Target.tcp()) for _ in range(20)]
        for connection in busy:
            connection.send_query("SELECT BENCHMARK(1000000000000, SHA2('a', 256))")
        for _ in range(10):
            self.connect(Target.tcp(), timeout=10).quit()
        if Target.admin_port:
            admin = self.connect(type(Target.tcp())(port=Target.admin_port), timeout=10)
            self.assertEqual(admin.value("SELECT 'admin'"), "admin")
        for connection in busy:
            self.control.query(f"KILL {connection.thread_id}")

    def test_half_open_logins_dont_block_others(self):
        """Clients that connect and stay silent occupy nothing that others need."""
        silent = [self.connect(Target.tcp(), login=False, timeout=20) for _ in range(100)]
        for _ in range(10):
            self.connect(Target.tcp(), timeout=10).quit()
        for connection in silent:
            connection.close()
