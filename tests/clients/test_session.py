"""Commands other than COM_QUERY, and state of a session among many."""

import random
import threading

from harness import ServerTest, Target
from mysql_wire import COM_PING


class Commands(ServerTest):
    """The commands of the protocol that a pool could get wrong."""

    def test_ping_reset_change_user(self):
        connection = self.connect(Target.unix(), database="test")
        connection.query("SET @a = 1")
        connection.ping()
        self.assertEqual(connection.value("SELECT @a"), "1")
        connection.reset()
        self.assertIsNone(connection.value("SELECT @a"))
        self.control.query("CREATE USER IF NOT EXISTS other")
        connection.query("SET @a = 1")
        connection.change_user("other", database="information_schema")
        self.assertEqual(connection.query("SELECT @a, USER(), DATABASE()").rows, [[None, "other@localhost", "information_schema"]])
        self.assert_error(1045, connection.change_user, "other", "wrong")
        self.control.query("DROP USER other")

    def test_unknown_command(self):
        connection = self.connect()
        connection.send_command(0xEE)
        self.assert_error(1047, connection.read_result)
        connection.ping()

    def test_packet_too_large(self):
        """The server says so and closes the session."""
        connection = self.connect(Target.tcp())
        connection.framing.stream.send(b"\xff\xff\xff\x00" + bytes([COM_PING]) + b"x" * 70000)
        connection.close()

    def test_statement_of_several_megabytes(self):
        connection = self.connect(Target.tcp())
        self.assertEqual(connection.value(f"SELECT LENGTH('{'x' * 3_000_000}')"), "3000000")
        self.assertEqual(len(connection.value("SELECT REPEAT('y', 3000000)")), 3_000_000)

    def test_slow_reader(self):
        """A client that reads its result late doesn't hinder the others."""
        reader = self.connect(Target.tcp())
        reader.send_query("SELECT REPEAT('z', 16000000)")
        for _ in range(20):
            self.assertEqual(self.connect().value("SELECT 1"), "1")
        self.assertEqual(len(reader.read_result().value()), 16_000_000)


class State(ServerTest):
    """Many threads use more sessions than the pool has threads; nothing gets mixed up."""

    SESSIONS = 60
    CLIENT_THREADS = 6
    STEPS = 60

    def test_state_stays_with_its_session(self):
        self.control.query("CREATE TABLE IF NOT EXISTS test.state (id BIGINT AUTO_INCREMENT PRIMARY KEY, owner INT)")
        self.control.query("TRUNCATE TABLE test.state")
        failures = []
        workers = [threading.Thread(target=self._work, args=(number, failures)) for number in range(self.CLIENT_THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        self.assertEqual(failures, [])
        self.assertFalse(any(worker.is_alive() for worker in workers))
        self.control.query("DROP TABLE test.state")

    def _work(self, worker, failures):
        try:
            chance = random.Random(Target.seed + worker)
            sessions = [Session(worker * 1000 + number) for number in range(self.SESSIONS // self.CLIENT_THREADS)]
            for _ in range(self.STEPS):
                chance.choice(sessions).step(chance)
            for session in sessions:
                session.finish()
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(f"worker {worker}, seed {Target.seed}: {failure!r}")


class Session:
    """A session whose state the client also keeps."""

    def __init__(self, owner):
        self.owner = owner
        address = Target.tcp() if owner % 2 else Target.unix()
        self.connection = Target.connect(address, database="test", compression="zstd" if owner % 3 == 0 else None)
        self.counter = 0
        self.inserted = 0
        self.connection.query(f"SET @owner = {owner}, @counter = 0")
        self.connection.query(f"CREATE TEMPORARY TABLE mine SELECT {owner} AS owner")
        self.statement, _ = self.connection.prepare("SELECT @owner, @counter, owner, ? FROM mine")
        self.connection.query(f"DO GET_LOCK('lock {owner}', 0)")

    def step(self, chance):
        action = chance.randrange(4)
        if action == 0:
            self.counter += 1
            self.connection.query("SET @counter = @counter + 1")
        elif action == 1:
            row = self.connection.execute(self.statement, self.counter).rows[0]
            assert [int(value) for value in row] == [self.owner, self.counter, self.owner, self.counter], row
        elif action == 2:
            self.inserted = self.connection.query(f"INSERT INTO state (owner) VALUES ({self.owner})").insert_id
        else:
            row = self.connection.query("SELECT LAST_INSERT_ID(), CONNECTION_ID()").rows[0]
            assert row == [str(self.inserted), str(self.connection.thread_id)], row

    def finish(self):
        held = self.connection.value(f"SELECT IS_USED_LOCK('lock {self.owner}') = CONNECTION_ID()")
        assert held == "1", held
        self.connection.quit()
