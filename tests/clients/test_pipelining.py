"""Commands that are sent before the answers to earlier ones were read."""

import mysql_wire
from harness import ServerTest, Target
from mysql_wire import COM_QUERY, Framing, compressed_frame, packet

COMMANDS = 100


def query_payload(number):
    return bytes([COM_QUERY]) + f"SELECT {number}".encode()


class Pipelining(ServerTest):
    """All commands are answered in order, although the client sends nothing more."""

    def check(self, connection):
        data = b"".join(connection.framing.encode(query_payload(number)) for number in range(COMMANDS))
        connection.framing.stream.send(data)
        answers = [connection.read_result().value() for _ in range(COMMANDS)]
        self.assertEqual(answers, [str(number) for number in range(COMMANDS)])
        self.assertEqual(connection.value("SELECT 'still in step'"), "still in step")
        connection.quit()

    def test_tcp(self):
        self.check(self.connect(Target.tcp()))

    def test_unix_socket(self):
        self.check(self.connect(Target.unix()))

    def test_tls(self):
        self.check(self.connect(Target.tcp(), tls=True))

    def test_tls_unix_socket(self):
        self.check(self.connect(Target.unix(), tls=True))

    def test_zlib_frames(self):
        self.check(self.connect(Target.tcp(), compression="zlib"))

    def test_zstd_frames(self):
        self.check(self.connect(Target.tcp(), compression="zstd"))

    def test_zstd_frames_in_tls(self):
        self.check(self.connect(Target.tcp(), compression="zstd", tls=True))

    def test_two_commands_in_one_tls_record(self):
        connection = self.connect(Target.tcp(), tls=True)
        connection.framing.stream.send(packet(query_payload(1)) + packet(query_payload(2)))
        self.assertEqual(connection.read_result().value(), "1")
        self.assertEqual(connection.read_result().value(), "2")

    def test_command_in_pieces(self):
        """Each byte in a segment of its own."""
        connection = self.connect(Target.tcp())
        for byte in packet(query_payload(7)):
            connection.framing.stream.send(bytes([byte]))
        self.assertEqual(connection.read_result().value(), "7")

    def test_many_sessions_at_once(self):
        connections = [self.connect(address) for address in [Target.tcp(), Target.unix()] * 20]
        data = b"".join(Framing(None).encode(query_payload(number)) for number in range(COMMANDS))
        for connection in connections:
            connection.framing.stream.send(data)
        for connection in connections:
            for number in range(COMMANDS):
                self.assertEqual(connection.read_result().value(), str(number))

    def test_quit_after_commands(self):
        """What was sent before COM_QUIT is still answered."""
        connection = self.connect(Target.tcp())
        data = b"".join(packet(query_payload(number)) for number in range(COMMANDS)) + packet(bytes([mysql_wire.COM_QUIT]))
        connection.framing.stream.send(data)
        for number in range(COMMANDS):
            self.assertEqual(connection.read_result().value(), str(number))
        self.assertRaises(EOFError, connection.read_result)

    def test_pipelining_behind_the_login(self):
        """Commands in the same segment as the last packet of the login."""
        connection = self.connect(Target.tcp(), login=False)
        connection.framing.stream.send(packet(connection.login_packet(), 1) + packet(query_payload(1)) + packet(query_payload(2)))
        connection.framing.receive()
        self.assertEqual(connection.read_result().value(), "1")
        self.assertEqual(connection.read_result().value(), "2")


class TwoCommandsInOneFrame(ServerTest):
    """The server answers the first command and refuses the second, which it takes for a part of the first."""

    def check(self, compression):
        connection = self.connect(Target.tcp(), compression=compression)
        both = packet(query_payload(1)) + packet(query_payload(2))
        connection.framing.stream.send(compressed_frame(both, connection.framing.compressor))
        self.assertEqual(connection.read_result().value(), "1")
        self.assert_error(1047, connection.read_result)
        self.assertEqual(connection.value("SELECT 3"), "3")

    def test_zlib(self):
        self.check("zlib")

    def test_zstd(self):
        self.check("zstd")
