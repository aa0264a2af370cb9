"""Replays what real clients send when they connect, also of those that are not installed here, byte by byte.

Each row of ROWS is one client: the requests of its first connection, in order, and what each reply must be. A row is sent
twice, as one pipelined write and as one request after the other; after it an ECHO must come back next. So every request
gets exactly one reply, nothing closes the connection, and a refusal is an error reply that starts as clients expect.
"""

import os
import sys
import uuid

from resp import Connection, encode

PORT = int(os.environ["CLIENTS_PORT"])
LOCKED_PORT = int(os.environ["CLIENTS_LOCKED_PORT"])
PASSWORD = os.environ["CLIENTS_PASSWORD"]

# What a reply may be. Each is a function of the reply that returns what it expected, or None if content.


def ok(reply):
    return None if (reply.type, reply.value) == ("+", b"OK") else "+OK"


def pong(reply):
    return None if (reply.type, reply.value) == ("+", b"PONG") else "+PONG"


def optional(reply):
    """A feature that need not exist: any answer, but if an error then a plain one, which all clients pass over."""
    return None if not reply.is_error() or reply.is_error(b"ERR ") else "an answer or -ERR"


def integer(reply):
    return None if reply.type == ":" else "an integer"


def text(reply):
    return None if reply.type in "$=" and reply.value is not None else "a string"


def null(reply):
    return None if reply.value is None else "null"


def array(reply):
    return None if reply.type == "*" and reply.value is not None else "an array"


def entries(reply):
    return None if reply.type in "*%" and len(reply.value) % 2 == 0 else "a map"


def refused(prefix):
    return lambda reply: None if reply.is_error(prefix.encode()) else f"-{prefix}"


def bulk(expected):
    return lambda reply: None if (reply.type, reply.value) == ("$", expected.encode()) else f"the string {expected!r}"


def info(*needed):
    """INFO text with a line for every name in `needed`, and every line well-formed."""

    def check(reply):
        if reply.type not in "$=":
            return "INFO text"
        body = reply.value.removeprefix(b"txt:") if reply.type == "=" else reply.value
        lines = [line for line in body.decode().split("\r\n") if line and not line.startswith("#")]
        if any(":" not in line for line in lines):
            return "name:value lines"
        names = {line.split(":", 1)[0] for line in lines}
        missing = [name for name in needed if name not in names]
        return f"INFO lines {missing}" if missing else None

    return check


def hello(protocol):
    """The server's self-description: a map in RESP3, in RESP2 a flat array, with the types that Lettuce and Jedis read."""

    def check(reply):
        if reply.type != ("%" if protocol == 3 else "*"):
            return f"the map of HELLO {protocol}"
        fields = reply.as_map()
        types = {b"server": "$", b"version": "$", b"proto": ":", b"id": ":", b"mode": "$", b"role": "$", b"modules": "*"}
        wrong = [name for name, kind in types.items() if name not in fields or fields[name].type != kind]
        if wrong:
            return f"HELLO fields {wrong}"
        version = fields[b"version"].value.split(b".")
        if len(version) != 3 or not all(part.isdigit() for part in version):
            return "a version of three numbers"
        return None if fields[b"proto"].value == protocol else f"proto {protocol}"

    return check


def subscribed(channel):
    """A confirmed subscription, which is a push in RESP3, or a plain refusal."""

    def check(reply):
        if reply.is_error(b"ERR "):
            return None
        parts = [part.value for part in reply.value] if reply.type in "*>" else None
        return None if parts == [b"subscribe", channel.encode(), 1] else "a subscription or -ERR"

    return check


NAME = ("CLIENT SETINFO LIB-NAME checks", optional)
VERSION = ("CLIENT SETINFO LIB-VER 1.2.3", optional)
MAINTENANCE = ("CLIENT MAINT_NOTIFICATIONS ON", optional)

# Requests are words with single spaces; a tuple of words where one has a space in it.
ROWS = {
    "redis-py": [
        ("HELLO 3", hello(3)), ("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip", optional),
        ("CLIENT SETNAME worker-1", ok), NAME, VERSION, ("SELECT 2", ok), ("PING", pong), ("READONLY", optional),
        ("CLUSTER SLOTS", optional), ("COMMAND", array), ("COMMAND GETKEYS GET k", array),
    ],
    "go-redis": [
        ("HELLO 3 SETNAME worker-1", hello(3)), ("SELECT 1", ok), ("READONLY", optional), ("CLIENT SETNAME w", ok),
        ("CLIENT TRACKING ON", optional), MAINTENANCE, NAME, VERSION, ("CLUSTER SLOTS", optional), ("COMMAND", array),
    ],
    "node-redis": [
        ("HELLO 3", hello(3)), ("SELECT 1", ok), ("READONLY", optional), VERSION, NAME, ("CLIENT TRACKING ON", optional),
        ("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type external-ip", optional), ("CLUSTER SLOTS", optional),
    ],
    "ioredis": [
        ("HELLO 3", hello(3)), ("SELECT 1", ok), ("CLIENT SETNAME w", ok), ("READONLY", optional), NAME, VERSION,
        ("INFO", info("loading", "role", "redis_version", "redis_mode")),
    ],
    "jedis": [
        ("HELLO 3", hello(3)), ("CLIENT SETNAME w", ok), NAME, VERSION, ("READONLY", optional), ("SELECT 1", ok),
        ("CLUSTER SLOTS", optional),
    ],
    "lettuce": [
        ("HELLO 3 SETNAME w", hello(3)), ("SELECT 1", ok), ("READONLY", optional), NAME, VERSION,
        ("CLIENT MAINT_NOTIFICATIONS on", optional), ("CLUSTER NODES", optional), ("INFO", info("redis_version")),
    ],
    # It falls back to RESP2 only on these two beginnings.
    "lettuce-fallback": [
        ("HELLO 4", refused("NOPROTO")), ("HELLOO 3", refused("ERR unknown command")), ("PING", pong),
    ],
    "redis-rs": [
        ("SELECT 1", ok), NAME, VERSION, ("HELLO 3", hello(3)), ("CLIENT TRACKING ON OPTIN", optional),
    ],
    "stackexchange-redis": [
        ("HELLO 2", hello(2)), ("CLIENT SETNAME w", ok), ("CLIENT SETINFO lib-name SE.Redis", optional),
        ("CLIENT SETINFO lib-ver 3.3.0", optional), ("CLIENT ID", integer), ("CONFIG GET timeout", entries),
        ("CONFIG GET replica-read-only", entries), ("CONFIG GET databases", entries), ("SENTINEL MASTERS", optional),
        ("INFO replication", info("role", "connected_slaves", "master_repl_offset")),
        ("INFO server", info("redis_version", "redis_mode", "run_id")), ("CLUSTER NODES", optional),
        ("GET __Booksleeve_TieBreak", null), ("ECHO 9c6a0c9e-44a4-4dcb-8d37-6d7f8a4b23f4", text),
    ],
    "stackexchange-redis-subscriber": [
        ("HELLO 2", hello(2)), ("CLIENT SETNAME w", ok), ("ECHO tracer", text),
        ("SUBSCRIBE __Booksleeve_MasterChanged", subscribed("__Booksleeve_MasterChanged")),
    ],
    "redisson": [
        ("HELLO 3", hello(3)), ("SELECT 1", ok), ("CLIENT SETNAME w", ok), ("CLIENT CAPA redirect", optional),
        ("READONLY", optional), ("PING", pong),
    ],
    "rueidis": [
        ("HELLO 3 SETNAME w", hello(3)), ("CLIENT TRACKING ON OPTIN", optional), ("SELECT 1", ok), ("READONLY", optional),
        ("CLIENT NO-TOUCH ON", optional), ("CLIENT NO-EVICT ON", optional), ("CLIENT CAPA redirect", optional),
        NAME, VERSION,
    ],
    "ruby-redis-client": [
        ("hello 3", hello(3)), ("select 1", ok), ("client setinfo LIB-NAME redis-client", optional),
        ("client setinfo LIB-VER 0.26.0", optional), ("client setname w", ok), ("role", optional),
    ],
    "phpredis": [("SELECT 1", ok), ("ECHO phpredis-pool-check", bulk("phpredis-pool-check"))],
    "predis": [("HELLO 2 SETNAME predis", hello(2)), NAME, VERSION, ("SELECT 1", ok), ("CLIENT GETNAME", bulk("predis"))],
    "redis-cli": [
        ("COMMAND DOCS", optional), ("COMMAND", array), ("INFO SERVER", info("redis_version")), ("DBSIZE", integer),
        ("SCAN 0", array), ("TYPE k", lambda reply: None if reply.type == "+" else "a status"), ("STRLEN k", integer),
        ("MEMORY USAGE k", optional), ("OBJECT FREQ k", optional), ("CONFIG GET databases", entries),
        ("LATENCY LATEST", optional), ("INFO", info("used_memory", "connected_clients", "total_commands_processed")),
    ],
    "redis-benchmark": [
        ("CONFIG GET save", entries), ("CONFIG GET appendonly", entries), ("HELLO 3", hello(3)),
        ("CLIENT TRACKING on", optional), ("CLUSTER NODES", optional), ("CLUSTER SLOTS", optional),
    ],
    "redis-exporter": [
        ("CLIENT SETNAME redis_exporter", ok), ("PING", pong), ("INFO", info("uptime_in_seconds", "maxmemory")),
        ("INFO ALL", info("keyspace_hits", "keyspace_misses", "expired_keys", "evicted_keys")), ("CONFIG GET *", entries),
        ("CLUSTER INFO", optional), ("CLUSTER NODES", optional), ("SLOWLOG LEN", optional), ("SLOWLOG GET 1", optional),
        ("LATENCY LATEST", optional), ("LATENCY HISTOGRAM", optional), ("COMMAND INFO COMMANDLOG", array),
        ("CLIENT LIST", text), ("MEMORY USAGE k", optional), ("XINFO STREAM k", optional), ("SENTINEL MASTERS", optional),
    ],
    "redis-shake": [
        ("PING", pong), ("INFO replication", info("role")), ("INFO Cluster", info("cluster_enabled")),
        ("INFO keyspace", info()), ("REPLCONF listening-port 10007", optional), ("REPLCONF CAPA EOF", optional),
        ("SCAN 0 COUNT 2048", array), ("DUMP k", optional), ("PTTL k", integer), ("RESTORE k 0 x", optional),
        ("PSUBSCRIBE __keyevent@*__:*", optional),
    ],
    "sentinel": [
        ("CLIENT SETNAME sentinel-0123abcd-cmd", ok), ("PING", pong),
        ("INFO", info("run_id", "role", "connected_slaves")),
        ("PUBLISH __sentinel__:hello 127.0.0.1,26379,0123,1,mymaster,127.0.0.1,6379,0", optional), ("PING", pong),
    ],
    "sentinel-pubsub": [
        ("CLIENT SETNAME sentinel-0123abcd-pubsub", ok), ("SUBSCRIBE __sentinel__:hello", subscribed("__sentinel__:hello")),
    ],
    "sidekiq": [("HELLO 3", hello(3)), ("INFO", info("redis_version", "maxmemory_policy"))],
}  # fmt: skip

# The same on the server that wants a password. A refusal in the middle of a pipeline is a reply like any other.
LOCKED_ROWS = {
    "hello-auth": [(("HELLO", "3", "AUTH", "default", PASSWORD), hello(3)), ("PING", pong)],
    "auth": [(("AUTH", PASSWORD), ok), ("SELECT 1", ok), NAME, VERSION, ("PING", pong)],
    "auth-user": [(("AUTH", "default", PASSWORD), ok), ("HELLO 3", hello(3))],
    "auth-not-first": [
        ("PING", refused("NOAUTH")), ("AUTH no", refused("WRONGPASS")), ("AUTH default no", refused("WRONGPASS")),
        (("AUTH", PASSWORD), ok), ("PING", pong),
    ],
    "hello-refused": [
        ("HELLO 3", refused("NOAUTH")), ("HELLO 3 AUTH default no", refused("WRONGPASS")), ("SELECT 1", refused("NOAUTH")),
        ("CLIENT SETINFO LIB-NAME x", refused("")), (("AUTH", PASSWORD), ok),
    ],
}  # fmt: skip


def words(request):
    return request.split(" ") if isinstance(request, str) else request


def in_sync(connection, replay):
    """The next reply must be that of an ECHO with a text nobody used before; within a subscription, of a PING."""
    tracer = uuid.uuid4().hex
    inside_subscription = any("SUBSCRIBE" in words(request)[0] for request, _ in replay)
    reply = connection.ask("PING" if inside_subscription else "ECHO", tracer)
    last = reply.value[-1].value if reply.type in "*>" else reply.value
    if last != tracer.encode():
        raise AssertionError(f"out of step: {reply} answered the closing ECHO")


def replay(port, row, pipelined):
    """Sends a row and checks each reply."""
    with Connection(port) as connection:
        if pipelined:
            connection.send(b"".join(encode(*words(request)) for request, _ in row))
        for request, expected in row:
            if not pipelined:
                connection.send(encode(*words(request)))
            reply = connection.read()
            complaint = expected(reply)
            if complaint:
                raise AssertionError(f"{request}: expected {complaint}, got {str(reply)[:300]}")
        in_sync(connection, row)


def silence():
    """CLIENT REPLY OFF, which RedisShake's writer uses: no reply until ON, unless the server does not know the command."""
    with Connection(PORT) as connection:
        requests = ["CLIENT REPLY OFF", "SET silence x", "CLIENT REPLY ON", "ECHO end"]
        connection.send(b"".join(encode(*words(request)) for request in requests))
        replies = [connection.read()]
        while replies[-1].value != b"end":
            replies.append(connection.read())
        known = [reply.type for reply in replies] == ["+", "$"]
        unknown = [reply.type for reply in replies] == ["-", "+", "-", "$"]
        if not known and not unknown:
            raise AssertionError(f"CLIENT REPLY OFF, SET, CLIENT REPLY ON, ECHO gave {replies}")


def replication():
    """PSYNC turns a connection into a stream, or is refused; either way the first line says which."""
    with Connection(PORT) as connection:
        connection.send(encode("PSYNC", "?", "-1"))
        line = connection.stream.readline()
        if not line.startswith((b"+FULLRESYNC ", b"-ERR ", b"-NOMASTERLINK ")):
            raise AssertionError(f"PSYNC gave {line!r}")


def main():
    print("version 1", flush=True)
    checks = {}
    for port, rows in ((PORT, ROWS), (LOCKED_PORT, LOCKED_ROWS)):
        for name, row in rows.items():
            for mode in ("pipelined", "one_by_one"):
                checks[f"{mode} {name}"] = lambda port=port, row=row, mode=mode: replay(port, row, mode == "pipelined")
    checks["raw client-reply-off"] = silence
    checks["raw psync"] = replication
    passed = True
    for name, check in checks.items():
        try:
            check()
            print(f"ok {name}", flush=True)
        except Exception as error:  # The report of a failed check is its whole purpose.
            print(f"not ok {name}: {type(error).__name__}: {error}", flush=True)
            passed = False
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
