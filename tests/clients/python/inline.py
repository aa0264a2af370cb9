"""Typed by hand: inline requests, mixtures with the binary protocol, and what the server says to nonsense."""

import os
import sys

from resp import Connection, encode

PORT = int(os.environ["CLIENTS_PORT"])


def lines(sent, *expected):
    """The bytes `sent` must be answered by exactly these raw replies, on a connection that stays open."""
    with Connection(PORT) as connection:
        connection.send(sent + encode("ECHO", "end"))
        answer = b"".join(expected) + b"$3\r\nend\r\n"
        received = connection.stream.read(len(answer))
        if received != answer:
            raise AssertionError(f"{sent!r} gave {received!r}, expected {answer!r}")


def fatal(sent, error):
    """The bytes `sent` break the protocol: the server says why, then closes."""
    with Connection(PORT) as connection:
        connection.send(sent)
        received = connection.stream.read()
        if received != error:
            raise AssertionError(f"{sent[:100]!r} gave {received!r}, expected {error!r}")


def plain():
    lines(b"PING\r\n", b"+PONG\r\n")
    lines(b"PING\n", b"+PONG\r\n")
    lines(b"  PING  \r\n", b"+PONG\r\n")
    lines(b"ping\tagain\r\n", b"$5\r\nagain\r\n")


def empty_lines():
    lines(b"\r\n\r\n\nPING\r\n   \r\nPING\r\n", b"+PONG\r\n", b"+PONG\r\n")


def quoted():
    lines(b'SET q "a \\x41\\n\\"b"\r\nGET q\r\n', b"+OK\r\n", b'$6\r\na A\n"b\r\n')
    lines(b"SET q 'a \\x41 \\'b'\r\nGET q\r\n", b"+OK\r\n", b"$9\r\na \\x41 'b\r\n")
    lines(b'SET q ""\r\nGET q\r\n', b"+OK\r\n", b"$0\r\n\r\n")
    lines(b'SET q ab"c"\r\nGET q\r\n', b"+OK\r\n", b"$3\r\nabc\r\n")


def pipelined():
    lines(b"SET inline 1\r\nINCR inline\r\n" * 500, *[b"+OK\r\n", b":2\r\n"] * 500)


def all_written_first():
    """`cat FILE | nc -N`: all requests and the end of them, before the first reply is read."""
    deepest = int(os.environ["CLIENTS_DEEPEST"])
    for count, size in [(deepest, 1), (deepest // 10, 1000), (deepest // 1000, 100_000), (deepest // 10_000, 1_000_000)]:
        value = b"x" * size
        with Connection(PORT) as connection:
            connection.send(encode("SET", "deep", value) + b"GET deep\r\n" * count)
            connection.finish()
            received = connection.stream.read()
        if received != b"+OK\r\n" + (b"$%d\r\n%s\r\n" % (size, value)) * count:
            raise AssertionError(f"{count} replies of {size} bytes came as {len(received)} bytes")


def mixed():
    lines(b"SET m 1\r\n" + encode("INCR", "m") + b"INCR m\r\n" + encode("GET", "m"), b"+OK\r\n:2\r\n:3\r\n$1\r\n3\r\n")


def empty_arrays():
    lines(b"*0\r\n*-1\r\n" + encode("PING"), b"+PONG\r\n")


def byte_by_byte():
    with Connection(PORT) as connection:
        for byte in b"SET slow 'a b'\r\n" + encode("GET", "slow") + b"PING\r\n":
            connection.send(bytes([byte]))
        received = connection.stream.read(21)
        if received != b"+OK\r\n$3\r\na b\r\n+PONG\r\n":
            raise AssertionError(f"got {received!r}")


def half_request():
    """A client that goes away in the middle of a request leaves nothing behind."""
    for sent in (b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$5\r\nval", b"SET half val"):
        with Connection(PORT) as connection:
            connection.send(sent)
    lines(b"EXISTS half\r\n", b":0\r\n")


def unbalanced():
    message = b"-ERR Protocol error: unbalanced quotes in request\r\n"
    fatal(b'SET q "open\r\n', message)
    fatal(b'SET q "a"b\r\n', message)


def too_big():
    fatal(b"x" * (64 * 1024 + 10), b"-ERR Protocol error: too big inline request\r\n")
    fatal(b"*" + b"1" * (64 * 1024 + 10), b"-ERR Protocol error: too big mbulk count string\r\n")


def wrong_lengths():
    fatal(b"*x\r\n", b"-ERR Protocol error: invalid multibulk length\r\n")
    fatal(b"*2147483648\r\n", b"-ERR Protocol error: invalid multibulk length\r\n")
    fatal(b"*1\r\n+PING\r\n", b"-ERR Protocol error: expected '$', got '+'\r\n")
    fatal(b"*1\r\n$-1\r\n", b"-ERR Protocol error: invalid bulk length\r\n")
    fatal(b"*1\r\n$99999999999\r\n", b"-ERR Protocol error: invalid bulk length\r\n")


def good_before_bad():
    """What was whole before the mistake is still executed and answered."""
    fatal(encode("PING") + b"*1\r\n+PING\r\n", b"+PONG\r\n-ERR Protocol error: expected '$', got '+'\r\n")


def web_browser():
    """A cross-site request must not run commands that its body contains."""
    fatal(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET web x\r\n", b"")
    fatal(b"Host: localhost\r\nSET web x\r\n", b"")
    lines(b"EXISTS web\r\n", b":0\r\n")


def quit_closes():
    fatal(b"QUIT\r\n", b"+OK\r\n")
    fatal(encode("QUIT") + encode("SET", "quit", "x"), b"+OK\r\n")
    lines(b"EXISTS quit\r\n", b":0\r\n")


CHECKS = [
    plain, empty_lines, quoted, pipelined, all_written_first, mixed, empty_arrays, byte_by_byte, half_request, unbalanced, too_big,
    wrong_lengths, good_before_bad, web_browser, quit_closes,
]  # fmt: skip


def main():
    print("version 1", flush=True)
    with Connection(PORT) as connection:
        connection.ask("FLUSHALL")
    passed = True
    for check in CHECKS:
        try:
            check()
            print(f"ok raw {check.__name__}", flush=True)
        except Exception as error:  # The report of a failed check is its whole purpose.
            print(f"not ok raw {check.__name__}: {type(error).__name__}: {error}", flush=True)
            passed = False
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
