"""A small client for MySQL's classic protocol that gives tests control over every byte.

An ordinary client library sends one command, waits for the answer, and hides packets, TLS records and
compressed frames. Here they are separate layers:

    Connection   handshake, commands, results
    Framing      packets, or packets inside compressed frames
    PlainStream, TlsStream   bytes on a socket

Everything is blocking, with the timeout of the socket as bound.
"""

import ctypes
import hashlib
import socket
import ssl
import struct
import zlib

# Commands.
COM_QUIT = 0x01
COM_QUERY = 0x03
COM_PING = 0x0E
COM_CHANGE_USER = 0x11
COM_BINLOG_DUMP = 0x12
COM_STMT_PREPARE = 0x16
COM_STMT_EXECUTE = 0x17
COM_RESET_CONNECTION = 0x1F

# Capability flags of the handshake.
LONG_PASSWORD = 1 << 0
LONG_FLAG = 1 << 2
CONNECT_WITH_DB = 1 << 3
COMPRESS = 1 << 5
LOCAL_FILES = 1 << 7
PROTOCOL_41 = 1 << 9
INTERACTIVE = 1 << 10
SSL = 1 << 11
TRANSACTIONS = 1 << 13
SECURE_CONNECTION = 1 << 15
MULTI_RESULTS = 1 << 17
PLUGIN_AUTH = 1 << 19
DEPRECATE_EOF = 1 << 24
ZSTD = 1 << 26

BASE_CAPABILITIES = (
    LONG_PASSWORD | LONG_FLAG | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | MULTI_RESULTS | PLUGIN_AUTH | DEPRECATE_EOF
)
UTF8MB4 = 255
MAX_PACKET = 0xFFFFFF
STATUS_IN_TRANSACTION = 0x0001
STATUS_MORE_RESULTS = 0x0008

# Column types that the binary protocol sends as numbers of fixed size: struct format by type.
BINARY_NUMBERS = {1: "<b", 2: "<h", 3: "<i", 4: "<f", 5: "<d", 8: "<q", 9: "<i", 13: "<h"}
# Size of a length-encoded integer by its first byte.
INTEGER_SIZES = {0xFC: 2, 0xFD: 3, 0xFE: 8}
TYPE_LONGLONG = 8
TYPE_NULL = 6
TYPE_VAR_STRING = 253


class ServerError(Exception):
    """An error packet."""

    def __init__(self, code, state, message):
        super().__init__(f"{code} ({state}): {message}")
        self.code = code


class Result:
    """An OK packet or a result set."""

    def __init__(self, columns=(), rows=(), affected=0, insert_id=0, status=0, warnings=0):
        self.columns = columns
        self.rows = rows
        self.affected = affected
        self.insert_id = insert_id
        self.status = status
        self.warnings = warnings

    def value(self):
        """The first column of the first row."""
        return self.rows[0][0]


# ---------------------------------------------------------------------------------------------------------------------
# Streams of bytes


class PlainStream:
    """Bytes on a TCP or unix socket."""

    def __init__(self, sock):
        self.sock = sock
        self._buffer = b""

    def send(self, data):
        self.sock.sendall(data)

    def _more(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError("the server closed the connection")
        return data

    def receive(self, size):
        """Exactly `size` bytes."""
        while len(self._buffer) < size:
            self._buffer += self._more()
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data


class TlsStream(PlainStream):
    """Bytes in TLS records. One `send` of up to 16 KiB makes one record."""

    def __init__(self, sock):
        super().__init__(sock)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        self._repeat(self._tls.do_handshake)

    def _repeat(self, operation):
        """Runs an operation of the TLS object, moving bytes between it and the socket as it needs them."""
        while True:
            try:
                result = operation()
                self._flush()
                return result
            except ssl.SSLWantReadError:
                self._flush()
                data = self.sock.recv(65536)
                if not data:
                    raise EOFError("the server closed the connection") from None
                self._incoming.write(data)
            except ssl.SSLZeroReturnError:
                raise EOFError("the server closed the connection") from None

    def _flush(self):
        data = self._outgoing.read()
        if data:
            self.sock.sendall(data)

    def send(self, data):
        self._repeat(lambda: self._tls.write(data))

    def _more(self):
        data = self._repeat(lambda: self._tls.read(65536))
        if not data:
            raise EOFError("the server closed the connection")
        return data


# ---------------------------------------------------------------------------------------------------------------------
# Compression


class Zstd:
    """The two calls of libzstd that compressed frames need."""

    def __init__(self):
        self._library = ctypes.CDLL("libzstd.so.1")
        for name in ("ZSTD_compressBound", "ZSTD_compress", "ZSTD_decompress"):
            getattr(self._library, name).restype = ctypes.c_size_t

    def compress(self, data):
        bound = self._library.ZSTD_compressBound(ctypes.c_size_t(len(data)))
        target = ctypes.create_string_buffer(bound)
        size = self._library.ZSTD_compress(
            target, ctypes.c_size_t(bound), data, ctypes.c_size_t(len(data)), ctypes.c_int(3)
        )
        return target.raw[: self._checked(size)]

    def decompress(self, data, size):
        target = ctypes.create_string_buffer(size)
        done = self._library.ZSTD_decompress(target, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
        return target.raw[: self._checked(done)]

    def _checked(self, size):
        if self._library.ZSTD_isError(ctypes.c_size_t(size)):
            raise ValueError("libzstd refuses the data")
        return size


class Zlib:
    """zlib with the interface of `Zstd`."""

    @staticmethod
    def compress(data):
        return zlib.compress(data)

    @staticmethod
    def decompress(data, _size):
        return zlib.decompress(data)


COMPRESSORS = {"zlib": (Zlib, COMPRESS), "zstd": (Zstd, ZSTD)}


def packet(payload, sequence=0):
    """A packet with its header."""
    assert len(payload) < MAX_PACKET
    return struct.pack("<I", len(payload))[:3] + bytes([sequence & 0xFF]) + payload


def compressed_frame(data, compressor, sequence=0):
    """A compressed frame around packets."""
    body = compressor.compress(data)
    return struct.pack("<I", len(body))[:3] + bytes([sequence & 0xFF]) + struct.pack("<I", len(data))[:3] + body


class Framing:
    """Packets on a stream; inside compressed frames once a compressor is set."""

    def __init__(self, stream):
        self.stream = stream
        self.compressor = None
        self.sequence = 0
        self._unpacked = b""

    def encode(self, payload, sequence=0):
        """The bytes on the wire for one packet."""
        data = packet(payload, sequence)
        return compressed_frame(data, self.compressor, sequence) if self.compressor else data

    def send(self, payload, sequence=0):
        self.stream.send(self.encode(payload, sequence))

    def receive(self):
        """The payload of the next packet, joined when it spans several."""
        whole = b""
        while True:
            header = self._receive(4)
            size = int.from_bytes(header[:3], "little")
            self.sequence = header[3]
            whole += self._receive(size)
            if size < MAX_PACKET:
                return whole

    def _receive(self, size):
        if self.compressor is None:
            return self.stream.receive(size)
        while len(self._unpacked) < size:
            self._unpacked += self._receive_frame()
        data, self._unpacked = self._unpacked[:size], self._unpacked[size:]
        return data

    def _receive_frame(self):
        header = self.stream.receive(7)
        body = self.stream.receive(int.from_bytes(header[:3], "little"))
        unpacked_size = int.from_bytes(header[4:7], "little")
        return self.compressor.decompress(body, unpacked_size) if unpacked_size else body


# ---------------------------------------------------------------------------------------------------------------------
# Encoding of values


def length_encoded(data):
    """A string with its length in front."""
    size = len(data)
    if size < 251:
        return bytes([size]) + data
    if size < 1 << 16:
        return b"\xfc" + struct.pack("<H", size) + data
    return b"\xfd" + struct.pack("<I", size)[:3] + data


class Reader:
    """Takes values off the front of a packet."""

    def __init__(self, data):
        self.data = data
        self.position = 0

    def take(self, size):
        data = self.data[self.position : self.position + size]
        self.position += size
        return data

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def until_zero(self):
        end = self.data.index(b"\0", self.position)
        data = self.take(end - self.position)
        self.position += 1
        return data

    def integer(self):
        """A length-encoded integer; None stands for NULL."""
        first = self.number(1)
        if first == 0xFB:
            return None
        return self.number(INTEGER_SIZES[first]) if first in INTEGER_SIZES else first

    def text(self):
        """A length-encoded string; None stands for NULL."""
        size = self.integer()
        return None if size is None else self.take(size).decode("utf-8", "replace")

    def rest(self):
        return self.data[self.position :]


def scramble(password, nonce):
    """The answer of caching_sha2_password to the server's nonce."""
    if not password:
        return b""
    once = hashlib.sha256(password.encode()).digest()
    mask = hashlib.sha256(hashlib.sha256(once).digest() + nonce).digest()
    return bytes(a ^ b for a, b in zip(once, mask))


def parse_error(data):
    reader = Reader(data)
    reader.take(1)
    code = reader.number(2)
    state = reader.take(6)[1:].decode() if reader.data[3:4] == b"#" else "HY000"
    return ServerError(code, state, reader.rest().decode("utf-8", "replace"))


# ---------------------------------------------------------------------------------------------------------------------
# Connections


class Address:
    """Where a server listens: a unix socket, or a TCP port of the loopback interface."""

    def __init__(self, socket_path=None, port=None, host="127.0.0.1"):
        self.socket_path = socket_path
        self.port = port
        self.host = host

    def open(self, timeout):
        """A connected socket."""
        if self.socket_path:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(timeout)
            sock.connect(self.socket_path)
        else:
            sock = socket.create_connection((self.host, self.port), timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock


class Connection:
    """One session. `login=False` stops after the server's greeting."""

    def __init__(
        self,
        address,
        user="root",
        password="",
        database="",
        tls=False,
        compression=None,
        capabilities=0,
        timeout=30.0,
        login=True,
    ):
        self.user = user
        self.password = password
        self.database = database
        self.capabilities = BASE_CAPABILITIES | capabilities
        if compression:
            self.capabilities |= COMPRESSORS[compression][1]
        if database:
            self.capabilities |= CONNECT_WITH_DB
        self.compression = compression
        self.secure = tls or bool(address.socket_path)
        self.sock = address.open(timeout)
        self.framing = Framing(PlainStream(self.sock))
        try:
            self._read_greeting()
            if tls:
                self._start_tls()
            if login:
                self._login()
        except BaseException:
            self.sock.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Handshake

    def _read_greeting(self):
        data = self.framing.receive()
        if data[0] == 0xFF:
            raise parse_error(data)
        reader = Reader(data)
        reader.take(1)
        self.server_version = reader.until_zero().decode()
        self.thread_id = reader.number(4)
        nonce = reader.take(8)
        reader.take(1 + 2 + 1 + 2 + 2 + 1 + 10)
        self.nonce = nonce + reader.take(12)

    def _header(self):
        return struct.pack("<IIB23x", self.capabilities, MAX_PACKET, UTF8MB4)

    def _start_tls(self):
        self.capabilities |= SSL
        self.framing.send(self._header(), self.framing.sequence + 1)
        self.framing.stream = TlsStream(self.sock)
        self.framing.sequence += 1

    def login_packet(self):
        """The client's answer to the greeting, without packet header."""
        answer = scramble(self.password, self.nonce)
        data = self._header() + self.user.encode() + b"\0" + bytes([len(answer)]) + answer
        if self.database:
            data += self.database.encode() + b"\0"
        data += b"caching_sha2_password\0"
        if self.compression == "zstd":
            data += bytes([3])
        return data

    def _login(self):
        self.framing.send(self.login_packet(), self.framing.sequence + 1)
        self._finish_authentication()
        if self.compression:
            self.framing.compressor = COMPRESSORS[self.compression][0]()

    def _finish_authentication(self):
        while True:
            data = self.framing.receive()
            if data[0] == 0x00:
                return
            if data[0] == 0xFF:
                raise parse_error(data)
            if data[0] == 0xFE:
                reader = Reader(data[1:])
                plugin = reader.until_zero().decode()
                if plugin == "sha256_password":
                    # What the server may ask an unknown account for, lest its answer tells that there's none.
                    self.framing.send(b"\0", self.framing.sequence + 1)
                    continue
                assert plugin == "caching_sha2_password", f"the server wants {plugin}"
                self.nonce = reader.rest()[:20]
                self.framing.send(scramble(self.password, self.nonce), self.framing.sequence + 1)
            elif data == b"\x01\x04":
                if not self.secure:
                    raise ValueError("the password isn't in the server's cache: log in by TLS or unix socket")
                self.framing.send(self.password.encode() + b"\0", self.framing.sequence + 1)

    # Commands

    def send_command(self, command, payload=b""):
        self.framing.send(bytes([command]) + payload)

    def send_query(self, sql):
        self.send_command(COM_QUERY, sql.encode())

    def query(self, sql):
        """Runs a statement and returns its (last) result."""
        self.send_query(sql)
        return self.read_result()

    def value(self, sql):
        return self.query(sql).value()

    def ping(self):
        self.send_command(COM_PING)
        return self.read_result()

    def reset(self):
        """COM_RESET_CONNECTION."""
        self.send_command(COM_RESET_CONNECTION)
        return self.read_result()

    def change_user(self, user, password="", database=""):
        """COM_CHANGE_USER."""
        self.user, self.password, self.database = user, password, database
        answer = scramble(password, self.nonce)
        payload = user.encode() + b"\0" + bytes([len(answer)]) + answer + database.encode() + b"\0"
        payload += struct.pack("<H", UTF8MB4) + b"caching_sha2_password\0"
        self.send_command(COM_CHANGE_USER, payload)
        self._finish_authentication()

    def prepare(self, sql):
        """COM_STMT_PREPARE; returns the statement's id and its number of parameters."""
        self.send_command(COM_STMT_PREPARE, sql.encode())
        data = self.framing.receive()
        if data[0] == 0xFF:
            raise parse_error(data)
        reader = Reader(data)
        reader.take(1)
        statement, columns, parameters = reader.number(4), reader.number(2), reader.number(2)
        for _ in range(columns + parameters):
            self.framing.receive()
        return statement, parameters

    def execute(self, statement, *values):
        """COM_STMT_EXECUTE with integers, strings and None as parameters."""
        payload = struct.pack("<IBI", statement, 0, 1)
        if values:
            nulls = bytearray((len(values) + 7) // 8)
            types = data = b""
            for index, value in enumerate(values):
                if value is None:
                    nulls[index // 8] |= 1 << (index % 8)
                    types += struct.pack("<H", TYPE_NULL)
                elif isinstance(value, int):
                    types += struct.pack("<H", TYPE_LONGLONG)
                    data += struct.pack("<q", value)
                else:
                    types += struct.pack("<H", TYPE_VAR_STRING)
                    data += length_encoded(value.encode())
            payload += bytes(nulls) + b"\x01" + types + data
        self.send_command(COM_STMT_EXECUTE, payload)
        return self.read_result(binary=True)

    def dump_binary_log(self, file, server_id):
        """COM_BINLOG_DUMP from the file's start: makes this the connection of a replica, which only receives."""
        # Tells the server that this client understands checksums.
        self.query("SET @source_binlog_checksum = @@GLOBAL.binlog_checksum")
        first_event = 4
        self.send_command(COM_BINLOG_DUMP, struct.pack("<IHI", first_event, 0, server_id) + file.encode())

    # Results

    def read_result(self, binary=False):
        """The (last) result of a command."""
        while True:
            result = self._read_one_result(binary)
            if not result.status & STATUS_MORE_RESULTS:
                return result

    def _read_one_result(self, binary):
        data = self.framing.receive()
        if data[0] == 0xFF:
            raise parse_error(data)
        if data[0] == 0x00:
            return self._parse_ok(data)
        columns = [self._parse_column(self.framing.receive()) for _ in range(Reader(data).integer())]
        rows = []
        while True:
            data = self.framing.receive()
            if data[0] == 0xFF:
                raise parse_error(data)
            if data[0] == 0xFE and len(data) < MAX_PACKET:
                result = self._parse_ok(data)
                result.columns, result.rows = [name for name, _ in columns], rows
                return result
            rows.append(self._parse_binary_row(data, columns) if binary else self._parse_text_row(data, columns))

    @staticmethod
    def _parse_ok(data):
        reader = Reader(data)
        reader.take(1)
        return Result(
            affected=reader.integer(), insert_id=reader.integer(), status=reader.number(2), warnings=reader.number(2)
        )

    @staticmethod
    def _parse_column(data):
        """Name and type of a column."""
        reader = Reader(data)
        for _ in range(4):
            reader.text()
        name = reader.text()
        reader.text()
        reader.take(1 + 2 + 4)
        return name, reader.number(1)

    @staticmethod
    def _parse_text_row(data, columns):
        reader = Reader(data)
        return [reader.text() for _ in columns]

    @staticmethod
    def _parse_binary_row(data, columns):
        reader = Reader(data)
        reader.take(1)
        nulls = reader.take((len(columns) + 9) // 8)
        row = []
        for index, (_, kind) in enumerate(columns, start=2):
            if nulls[index // 8] & 1 << (index % 8):
                row.append(None)
            elif kind in BINARY_NUMBERS:
                form = BINARY_NUMBERS[kind]
                row.append(struct.unpack(form, reader.take(struct.calcsize(form)))[0])
            else:
                row.append(reader.text())
        return row

    # End

    def quit(self):
        """COM_QUIT, then waits until the server has closed the connection."""
        self.send_command(COM_QUIT)
        self.wait_closed()
        self.close()

    def wait_closed(self):
        """Reads until the server has closed the connection."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionError:
            pass

    def close(self):
        """Closes the socket (FIN) without telling the server."""
        self.sock.close()

    def reset_socket(self):
        """Closes the socket with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
