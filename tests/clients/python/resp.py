"""A connection that speaks bytes: requests as they are, replies with their wire type.

Unlike a client library it hides nothing, so that a check can say "exactly one reply, of this type".
"""

import socket
from dataclasses import dataclass

TIMEOUT_SECONDS = 60


class Disconnected(Exception):
    """The server closed the connection where a reply was due."""


@dataclass(frozen=True)
class Reply:
    """One reply: its first byte on the wire, and its value (bytes, int, None, or a list of replies).

    A map is a list of alternating keys and values.
    """

    type: str
    value: object

    def is_error(self, prefix=b""):
        return self.type in "-!" and self.value.startswith(prefix)

    def as_map(self):
        """The entries of a map reply, or of the flat array that RESP2 has in its place."""
        return {key.value: value for key, value in zip(self.value[::2], self.value[1::2], strict=True)}


def encode(*words):
    """A request as an array of bulk strings."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Connection:
    """A blocking connection to a server on the loopback interface."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def finish(self):
        """Says that no more will be sent; replies can still be read."""
        self.socket.shutdown(socket.SHUT_WR)

    def ask(self, *words):
        """Sends one request and reads one reply."""
        self.send(encode(*words))
        return self.read()

    def read(self):
        """Reads one whole reply."""
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise Disconnected(f"after {line!r}")
        kind, rest = chr(line[0]), line[1:-2]
        if kind in "+-,(":
            return Reply(kind, rest)
        if kind == ":":
            return Reply(kind, int(rest))
        if kind == "_":
            return Reply(kind, None)
        if kind == "#":
            return Reply(kind, rest == b"t")
        if kind in "$=!":
            return Reply(kind, self._bulk(int(rest)))
        if kind in "*~>":
            return Reply(kind, None if rest == b"-1" else [self.read() for _ in range(int(rest))])
        if kind == "%":
            return Reply(kind, [self.read() for _ in range(2 * int(rest))])
        raise AssertionError(f"not the start of a reply: {line!r}")

    def _bulk(self, length):
        if length < 0:
            return None
        data = self.stream.read(length + 2)
        if data[length:] != b"\r\n":
            raise Disconnected(f"within a bulk string of {length} bytes, or it does not end there: {data[-10:]!r}")
        return data[:length]

    def is_closed(self):
        """Whether the server ends the connection, after whatever it still had to say."""
        try:
            return self.stream.read() is not None
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
