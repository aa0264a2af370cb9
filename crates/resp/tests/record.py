#!/usr/bin/env python3
"""Records what a real redis-server answers, for tests/recorded.rs to compare with.

Here lives the making of the tables in tests/data: requests, INCRBYFLOAT sums, doubles and slots. Nothing here is run by the tests.
Each line of a table is one case, fields separated by tabs, bytes outside of printable ASCII and backslashes as \\xHH.

    redis-server --port 23100 --save '' &
    tests/record.py --port 23100 --out tests/data      # the tables in the repository
    redis-server --port 23101 --save '' --cluster-enabled yes --dir /tmp &
    tests/record.py --port 23101 --out tests/data --tables slots --cases 500
    tests/record.py --port 23100 --out /tmp/large --seed 7 --cases 20000 --longest 20000   # a larger check:
    RESP_RECORDED=/tmp/large cargo test -p ferrite-resp --test recorded
"""

import argparse
import os
import random
import socket
import struct


def escape(data):
    return "".join(chr(b) if 0x20 <= b < 0x7F and b != 0x5C else "\\x%02x" % b for b in data)


class Table:
    """The cases of one file."""

    def __init__(self, path, longest):
        self.file = open(path, "w", encoding="ascii")
        self.longest = longest

    def case(self, *fields):
        line = "\t".join(map(escape, fields))
        if len(line) <= self.longest:
            self.file.write(line + "\n")


def request(*args):
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(parts)


def exchange(port, data):
    """Sends data, closes the sending side and returns all that comes back."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        reply = b""
        try:
            while chunk := connection.recv(1 << 16):
                reply += chunk
        except ConnectionResetError:
            pass
        return reply


class Pipeline:
    """Requests sent in batches, and the single-line or bulk replies to them."""

    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.file = self.connection.makefile("rb")

    def call(self, requests):
        self.connection.sendall(b"".join(request(*args) for args in requests))
        return [self.read() for _ in requests]

    def read(self):
        line = self.file.readline()[:-2]
        if line[:1] != b"$" or line == b"$-1":
            return line
        return self.file.read(int(line[1:]) + 2)[:-2]


# Requests. Every request of a case is EVAL "return ARGV" 0 ..., so that the reply shows its arguments.

NAME = [b"EVAL", b"return ARGV", b"0"]
HARD_BYTES = [b"\r", b"\n", b"\r\n", b"\0", b"'", b'"', b"\\", b" ", b"\t", b"\x0b", b"\x0c", b"$", b"*", b"-", b"+",
              b"0", b"1", b"9", b"x", b"n", b"\xff", b"\x80", b"a", b"\\x41", b"\\n", b"\\'", b'\\"', b"\\xg0"]
FIXED_REQUESTS = [
    b"*0\r\n", b"*-1\r\n", b"*-9223372036854775808\r\n", b"*-9223372036854775809\r\n", b"*+1\r\n", b"*01\r\n", b"*-0\r\n",
    b"*\r\n", b"*1\n$4\r\n", b"*2147483648\r\n", b"*2147483647\r\n$1", b"*1048577\r\n$1\r\na\r\n", b"* 1\r\n", b"*1 \r\n",
    b"*1\r\nx4\r\n", b"*1\r\nx", b"*1\r\n\r\n", b"*1\r\n\n\r\n", b"*1\r\n\xff\r\n", b"*1\r\n\0\r\n", b"*1\r\n$-1\r\n",
    b"*1\r\n$-0\r\n", b"*1\r\n$536870913\r\n", b"*1\r\n$536870912\r\n", b"*1\r\n$9223372036854775808\r\n", b"*1\r\n$\r\n",
    b"*1\r\n$04\r\nPING\r\n", b"*1\r\n$ 4\r\nPING\r\n", b"*1\r\n$4 \r\nPING\r\n", b"*1\r\n$+4\r\nPING\r\n", b"*1\r$4\r\n",
    b"*1\r\n$100\r", b"*9\r\n$a\r\n", b"\r\n", b"\n", b"   \r\n", b"\t\x0b\x0c\r\n\r\n*0\r\n\n", b'"\r\n', b"'\r\n",
    b'"a"b\r\n', b'"\\\r\n', b"'\\\r\n", b'"\\x4\r\n', b'"\\x41\r\n', b"PING\0\r\n", b"\0PING\r\n", b"*1\0\r\n",
    b'EVAL "return ARGV" 0 a"b" c\r\n', b'EVAL "return ARGV" 0 a"b"\x0bc\r\n', b"EVAL 'return ARGV' 0 a\x0bb \x0cc\r\n",
    b'EVAL "return ARGV" 0 "" \'\'\r\r\n', b'EVAL "return ARGV" 0 "\\x41\\x4g\\q\\a\\b\\t\\r\\n\\\\\\""\n',
    b"EVAL 'return ARGV' 0 'it\\'s' 'a\\nb' \\a\r\n", b'EVAL "return ARGV" 0\ra\rb\r\n',
]


def random_bytes(rng, most):
    return b"".join(rng.choice(HARD_BYTES) for _ in range(rng.randrange(most)))


def random_request(rng):
    if rng.random() < 0.5:
        args = [random_bytes(rng, rng.choice([3, 20])) for _ in range(rng.randrange(5))]
        if rng.random() < 0.1:
            args.append(b"v" * rng.choice([9, 10, 99, 100, 999, 1000, 9999, 10000]))
        return request(*NAME, *args)
    words = b" ".join(random_bytes(rng, 8) for _ in range(rng.randrange(5)))
    return b'EVAL "return ARGV" 0 ' + words + rng.choice([b"\r\n", b"\n"])


def mutate(rng, data):
    at = rng.randrange(len(data))
    kind = rng.randrange(3)
    if kind == 0:
        return data[:at] + rng.choice(HARD_BYTES) + data[at:]
    if kind == 1:
        return data[:at] + rng.choice(HARD_BYTES) + data[at + 1:]
    return data[:at] + data[at + 1:]


def shows_arguments(reply):
    """Whether the reply is of requests in the form above alone, and at most a protocol error behind them."""
    while reply:
        line, _, reply = reply.partition(b"\r\n")
        if line[:1] == b"-":
            return line.startswith(b"-ERR Protocol error") and not reply
        if line[:1] != b"*":
            return False
        for _ in range(int(line[1:])):
            line, _, reply = reply.partition(b"\r\n")
            if line[:1] != b"$" or line == b"$-1":
                return False
            reply = reply[int(line[1:]) + 2:]
    return True


def record_requests(port, rng, cases, out):
    inputs = list(FIXED_REQUESTS)
    for _ in range(cases):
        stream = b"".join(random_request(rng) for _ in range(rng.randrange(1, 4)))
        for _ in range(rng.choice([0, 1, 1, 2])):
            stream = mutate(rng, stream)
        inputs.append(stream)
    for data in inputs:
        reply = exchange(port, data)
        if shows_arguments(reply):
            out.case(data, reply)


# Numbers.

FIXED_NUMBERS = [
    b"", b"0", b"-0", b"+0", b"+1", b"1", b"-1", b" 1", b"1 ", b"1\0", b"\t1", b"01", b"-01", b"1.", b".5", b".", b"-.5", b"+.5e1",
    b"-", b"+", b"--1", b"1e", b"1e+", b"1e-", b"e5", b".e5", b"1e5", b"1E+5", b"1e-5", b"1e05", b"1 e5", b"1e5.0", b"1_0",
    b"1,5", b"inf", b"-inf", b"+inf", b"INF", b"Infinity", b"-iNfInItY", b"infinit", b"infx", b"nan", b"NaN", b"-nan", b"nan(1)",
    b"0x", b"0x1", b"0X1P4", b"-0x1.8p1", b"0x.8", b"0x1.", b"0x.", b"0x.p1", b"0x1p", b"0x1p+", b"0x1p-2", b"0xg", b"0x1g",
    b"1x", b"0b1", b"1d", b"1f", b"1L", b"3.0e3", b"5e-324", b"4.9e-324", b"2.4703282292062327e-324",
    b"2.4703282292062328e-324", b"1.7976931348623157e308", b"1.7976931348623158e308", b"1.7976931348623159e308", b"1e308",
    b"1e309", b"-1e309", b"1e-400", b"0e99999999999999999999", b"0e-99999999999999999999", b"1e99999999999999999999",
    b"1e-99999999999999999999", b"0x1p-1074", b"0x1p-1075", b"0x1.8p-1075", b"0x1.fffffffffffff8p1023",
    b"0x1.fffffffffffff7ffffffffffffffffffffp1023", b"0x1p1024", b"0x0p99999999999", b"0x1p99999999999999999999",
    b"9007199254740993", b"9007199254740992.99999999999999999999", b"9007199254740993.00000000000000000001",
    b"123456789012345678", b"1e15", b"1e16", b"1e17", b"123456789012345.5", b"0.0001", b"0.00001", b"0.000123456789",
    b"99999999999999999", b"999999999999999999", b"0.1", b"0.2", b"0.3", b"3.14", b"-2.5", b"100000", b"1234567.891",
    b"4.503599627370496e15", b"1" + b"0" * 308, b"0." + b"0" * 323 + b"1", b"0." + b"0" * 330 + b"1", b"9" * 400,
    b"1" * 600, b"0." + b"3" * 800, b"0" * 900 + b"7", b"1." + b"0" * 900 + b"1",
    b"18446744073709551615", b"18446744073709551616", b"18446744073709551617", b"36893488147419103233",
    b"36893488147419103234", b"36893488147419103235", b"9223372036854775807", b"-9223372036854775808",
    b"1e4932", b"1.1897314953572317650e4932", b"1.1897314953572317651e4932", b"1.1897314953572317656e4932", b"1.19e4932",
    b"1e4933", b"-1e4933", b"1e-4932", b"3.3621031431120935063e-4932", b"3.6e-4951", b"1.9e-4951", b"1.8e-4951", b"1e-4951",
    b"1e-4952", b"0x1p-16445", b"0x1p-16446", b"0x1.8p-16446", b"0x1p-16447", b"0x1p16383",
    b"0x1.fffffffffffffffep16383", b"0x1.ffffffffffffffffp16383", b"0x1.fffffffffffffffeffffp16383", b"0x1p16384",
    b"0xffffffffffffffffffffffffffffffffff", b"0x1.00000000000000010000000000000000001", b"0x1.0000000000000001",
    b"0x1.0000000000000003", b"1" * 5119, b"1" * 5120, b"0." + b"1" * 5117, b"0." + b"1" * 5118, b"0" * 5118 + b"5",
    b"0." + b"0" * 4949 + b"5", b"0." + b"0" * 4951 + b"5", b"1" + b"0" * 4932, b"1" + b"0" * 4933,
]

FIXED_SUMS = [
    (b"3", b"1.1"), (b"10.50", b"0.1"), (b"5.0e3", b"2.0e2"), (b"0.1", b"0.2"), (b"1", b"-1"), (b"-0", b"-0"), (b"0", b"-0"),
    (b"-0.000000000000000001", b"0"), (b"0.000000000000000005", b"0"), (b"0.000000000000000015", b"0"),
    (b"0x1p-18", b"0"), (b"0x3p-18", b"0"), (b"0x1p-58", b"0"), (b"0x1p-60", b"0x1p-57"), (b"0.99999999999999999", b"0.00000000000000001"),
    (b"0.999999999999999999", b"0"), (b"9.9999999999999999995", b"0"), (b"17179869184", b"1.5"), (b"1e17", b"0.5"),
    (b"1e19", b"0.5"), (b"1e20", b"-0.5"), (b"18446744073709551615", b"0.5"), (b"18446744073709551615", b"1.5"),
    (b"18446744073709551616", b"1"), (b"18446744073709551616", b"3"), (b"18446744073709551616", b"-0.25"),
    (b"18446744073709551616", b"-0.5"), (b"18446744073709551616", b"-0.75"), (b"9223372036854775808", b"0.5"),
    (b"9223372036854775809", b"0.5"), (b"9223372036854775808", b"0x1.8p-1"), (b"0x1p63", b"0x1.00000001p-1"),
    (b"0x1p64", b"-0x1p-1"), (b"0x1p64", b"-0x1.0000000000000002p-1"), (b"0x1p64", b"-0x1.fffffffffffffffep-2"),
    (b"0x1p100", b"-0x1p-16445"), (b"0x1p100", b"0x1p36"), (b"0x1p100", b"0x1.0000000000000002p36"),
    (b"0x1.0000000000000002p100", b"0x1p36"), (b"1e4932", b"1e4932"), (b"-1e4932", b"-1e4931"), (b"1e4932", b"-1e4932"),
    (b"0x1.fffffffffffffffep16383", b"0x1p16318"), (b"0x1.fffffffffffffffep16383", b"0x1p16319"),
    (b"0x1.fffffffffffffffep16383", b"0x1.8p16318"), (b"0x1.fffffffffffffffep16383", b"-0x1p16320"),
    (b"inf", b"1"), (b"1", b"inf"), (b"inf", b"-inf"), (b"-inf", b"inf"), (b"inf", b"inf"), (b"3.6e-4951", b"-3.6e-4951"),
    (b"0x1p-16382", b"-0x1p-16445"), (b"1e3000", b"1"), (b"1e3000", b"-1e2999"), (b"0x1p3000", b"-0x1p2999"),
]


def random_number(rng, widest):
    """A number's text of a kind that is hard in some way; widest is the largest decimal exponent worth trying."""
    sign = rng.choice([b"", b"-"])
    kind = rng.randrange(8)
    if kind == 0:
        return sign + b"%d" % rng.getrandbits(rng.randrange(1, 130))
    if kind == 1:
        return sign + b"%d.%0*d" % (rng.getrandbits(rng.randrange(1, 70)), rng.randrange(1, 25), rng.getrandbits(20))
    if kind == 2:
        return sign + b"%d.%de%d" % (rng.randrange(10), rng.getrandbits(rng.randrange(1, 80)),
                                     rng.randrange(-widest, widest))
    if kind == 3:
        return sign + b"%d.%de%d" % (rng.randrange(10), rng.getrandbits(rng.randrange(1, 80)), rng.randrange(-40, 40))
    if kind == 4:
        return sign + b"0x%x.%xp%d" % (rng.getrandbits(rng.randrange(1, 140)), rng.getrandbits(rng.randrange(1, 80)),
                                       rng.randrange(-80, 80))
    if kind == 5:
        # Near a tie of 64 bits: a value with 65 bits, and a little more or less.
        value = (rng.getrandbits(64) | 1 << 63) * 2 + 1
        digits = b"%d" % (value * 10 ** 30 + rng.choice([0, 0, 1, -1]))
        return sign + digits + b"e%d" % rng.randrange(-60, 20)
    if kind == 6:
        return sign + b"%.17g" % struct.unpack("<d", rng.randbytes(8))[0]
    return sign + b"%d" % rng.randrange(1, 10) + b"%d" % rng.randrange(10) * rng.randrange(300) + b"e-%d" % rng.randrange(300)


def record_sums(port, rng, cases, out):
    sums = FIXED_SUMS + [(number, b"0") for number in FIXED_NUMBERS]
    for _ in range(cases):
        a, b = random_number(rng, 4960), random_number(rng, 4960)
        if rng.random() < 0.3:
            b = rng.choice([b"-", b""]) + a.strip(b"-")[:rng.randrange(1, 30)]
        sums.append((a, b))
    pipeline = Pipeline(port)
    for start in range(0, len(sums), 100):
        batch = sums[start:start + 100]
        replies = pipeline.call([call for a, b in batch for call in ((b"SET", b"k", a), (b"INCRBYFLOAT", b"k", b))])
        for (a, b), reply in zip(batch, replies[1::2]):
            out.case(a, b, reply)


def record_doubles(port, rng, cases, out):
    numbers = FIXED_NUMBERS + [random_number(rng, 340) for _ in range(cases)]
    pipeline = Pipeline(port)
    for start in range(0, len(numbers), 100):
        batch = numbers[start:start + 100]
        calls = [call for number in batch
                 for call in ((b"DEL", b"z"), (b"ZADD", b"z", number, b"m"), (b"ZSCORE", b"z", b"m"))]
        replies = pipeline.call(calls)
        for number, added, score in zip(batch, replies[1::3], replies[2::3]):
            out.case(number, added if added[:1] == b"-" else score)


# Slots of keys, as a server in cluster mode computes them. It needs no cluster beside itself.

FIXED_KEYS = [b"", b"a", b"foo", b"{", b"}", b"{}", b"}{", b"{}a", b"a{}", b"{a}", b"{a}b", b"b{a}c{d}", b"{{a}}", b"{}{a}",
              b"}{a}", b"{a", b"a}", b"a{b{c}d}e", b"{a}{b}", b"x" * 300, b"123456789"]


def random_key(rng):
    pieces = [b"{", b"}", b"{}", b"a", b"user:", b"\xff", b"\0", b" ", b"\r\n", rng.randbytes(rng.randrange(1, 9))]
    return b"".join(rng.choice(pieces) for _ in range(rng.randrange(1, 10)))


def record_slots(port, rng, cases, out):
    keys = FIXED_KEYS + [random_key(rng) for _ in range(cases)]
    pipeline = Pipeline(port)
    for start in range(0, len(keys), 100):
        batch = keys[start:start + 100]
        for key, reply in zip(batch, pipeline.call([(b"CLUSTER", b"KEYSLOT", key) for key in batch])):
            out.case(key, reply[1:])


RECORDS = {"requests": record_requests, "sums": record_sums, "doubles": record_doubles, "slots": record_slots}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tables", default="requests,sums,doubles",
                        help="which ones; slots needs a server with --cluster-enabled yes, the others one without")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=100, help="random cases per table, beside the fixed ones")
    parser.add_argument("--longest", type=int, default=400, help="leave out cases whose line is longer than this")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    for name in options.tables.split(","):
        table = Table(os.path.join(options.out, name + ".txt"), options.longest)
        RECORDS[name](options.port, random.Random(options.seed), options.cases, table)


if __name__ == "__main__":
    main()
