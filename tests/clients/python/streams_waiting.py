"""200 readers that wait for streams, on redis-server and on the server: the same readers get the same replies at each step.

    streams_waiting.py STEPS [SEED]

Readers of ten kinds wait with XREAD BLOCK and XREADGROUP BLOCK, for one key or for several. Each step is a request, a
transaction or a script that may serve some of them or end their waiting with an error. Then those that have their reply
wait again, in order. First come steps that were chosen, then STEPS random ones. The server ($CLIENTS_SERVER) has one
thread, then four. `mistakes_are_found` shows that the comparison can fail.
"""

import copy
import os
import random
import select
import sys
import time
import traceback
from pathlib import Path

import resp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import servers  # noqa: E402

BINARY = os.environ["CLIENTS_SERVER"]
READERS = 200
KEYS = ["a", "b", "c", "d"]
# The end of a wait for something that does not happen.
SILENCE_SECONDS = 30

# What readers ask for; NAME is the name of a reader, also as a consumer.
KINDS = [
    "XREAD BLOCK 0 STREAMS a $",
    "XREADGROUP GROUP g NAME BLOCK 0 STREAMS a >",
    "XREAD BLOCK 0 COUNT 1 STREAMS a b $ $",
    "XREADGROUP GROUP g NAME COUNT 2 BLOCK 0 STREAMS b >",
    "XREADGROUP GROUP g NAME BLOCK 0 NOACK STREAMS a b > >",
    "XREAD BLOCK 0 STREAMS c d 100-0 $",
    "XREADGROUP GROUP h NAME BLOCK 0 STREAMS c >",
    "XREAD BLOCK 0 STREAMS none 0",
    "XREADGROUP GROUP g NAME BLOCK 0 STREAMS d c b > > >",
    "XREAD BLOCK 0 STREAMS d b c $ $ $",
]
GROUPS = [f"XGROUP CREATE {key} {group} $ MKSTREAM" for key in KEYS for group in "gh"]
TWO_ADDITIONS = "EVAL \"redis.call('XADD',KEYS[1],ARGV[1],'n','1') return redis.call('XADD',KEYS[2],ARGV[1],'n','2')\" 2"

# Steps: requests with blanks between, which one connection sends. ID is an ID above all before; EVAL's text is one word.
CHOSEN = [
    ["XADD a ID n 1"],
    ["XADD a ID n 1"],
    ["XADD b ID n 1"],
    ["XADD c 7-0 n 1"],
    ["XADD d 7-0 n 1"],
    ["XADD c 101-0 n 1"],
    ["MULTI", "XADD a ID n 1", "XADD b ID n 2", "XADD a ID n 3", "EXEC"],
    ["MULTI", "XADD d ID n 1", "XADD c ID n 2", "XADD b ID n 3", "EXEC"],
    [f"{TWO_ADDITIONS} b a ID"],
    ["MULTI", "XADD b 500-0 n 1", "XDEL b 500-0", "EXEC"],
    ["XADD none ID n 1"],
    ["DEL none"],
    ["LPUSH none 1"],
    ["DEL none"],
    ["DEL a"],
    ["XADD a ID n 1"],
    GROUPS,
    ["SET b text"],
    ["DEL b"],
    GROUPS,
    ["MULTI", "DEL c", "XADD c ID n 1", "EXEC"],
    GROUPS,
    ["XGROUP DESTROY d g"],
    GROUPS,
    ["XGROUP DESTROY c h", "XADD c ID n 1"],
    GROUPS,
    ["XADD spare ID n 1", "RENAME spare a"],
    GROUPS,
    ["XADD spare ID n 1", "XGROUP CREATE spare g 0", "RENAME spare b"],
    GROUPS,
    ["UNBLOCK 1 TIMEOUT"],
    ["UNBLOCK 1 ERROR"],
    ["UNBLOCK 2 TIMEOUT", "UNBLOCK 4 ERROR", "XADD a ID n 1"],
    ["MULTI", "UNBLOCK 11 ERROR", "XADD a ID n 1", "EXEC"],
    ["CUT 1", "XADD a ID n 1"],
    ["XGROUP DELCONSUMER a g r11", "XADD a ID n 1"],
    ["MULTI", "XGROUP SETID a g 0", "XADD a ID n 1", "EXEC"],
    ["XSETID d 900000-0"],
    ["PEXPIREAT a 1"],
    GROUPS,
    ["FLUSHALL"],
    GROUPS,
    # A stream of another database comes in place of none, then all keys come from there. redis-server looks at exchanged
    # keys in no certain order, so only one of them has something new.
    ["DEL a"],
    ["SELECT 1", "XADD a ID n 1", "XGROUP CREATE a g 0", "MOVE a 0", "SELECT 0"],
    GROUPS,
    ["SELECT 1", "XADD a ID n 1", "XGROUP CREATE a g 0", *GROUPS, "XADD none ID n 1", "SELECT 0", "SWAPDB 0 1"],
    ["DEL none"],
    GROUPS,
    ["XADD spare ID n 1", "XGROUP CREATE spare g 0", "COPY spare d REPLACE"],
    GROUPS,
]


def random_step(random):
    """A step that serves readers, or one that ends the waiting of some and makes their groups again."""
    key, other = random.sample(KEYS, 2)
    reader = random.randrange(READERS)
    group = random.choice("ggh")
    serving = [
        [f"XADD {key} ID n 1"],
        [f"XADD {key} ID n 1", f"XADD {other} ID n 2"],
        ["MULTI", f"XADD {key} ID n 1", f"XADD {other} ID n 2", f"XADD {key} ID n 3", "EXEC"],
        [f"{TWO_ADDITIONS} {key} {other} ID"],
        ["XADD none ID n 1", "DEL none"],
        [f"UNBLOCK {reader} TIMEOUT"],
        [f"UNBLOCK {reader} ERROR"],
        [f"CUT {reader}", f"XADD {key} ID n 1"],
        [f"XTRIM {key} MAXLEN 1", f"XADD {other} ID n 1"],
    ]
    ending = [
        [f"DEL {key}"],
        [f"DEL {key} {other}"],
        [f"SET {key} text"],
        ["MULTI", f"SET {key} text", f"XADD {other} ID n 1", "EXEC"],
        ["MULTI", f"DEL {key}", f"XADD {key} ID n 1", "EXEC"],
        [f"XGROUP DESTROY {key} {group}"],
        ["MULTI", f"XADD {key} ID n 1", f"XGROUP DESTROY {key} {group}", "EXEC"],
        ["XADD spare ID n 1", f"RENAME spare {key}"],
        [f"RENAME {key} {other}"],
        [f"COPY {key} {other} REPLACE"],
        [f"PEXPIREAT {key} 1"],
        ["FLUSHALL"],
    ]
    if random.random() < 0.7:
        return [random.choice(serving)]
    return [random.choice(ending), [f"DROP {key}", f"DROP {other}", *GROUPS]]


class Reader:
    """A connection that waits."""

    def __init__(self, port, number):
        self.port = port
        self.number = number
        self.request = KINDS[number % len(KINDS)].replace("NAME", f"r{number}").split()
        self.connect()

    def connect(self):
        self.connection = resp.Connection(self.port)
        self.id = self.connection.ask("CLIENT", "ID").value
        self.waits = False

    def hear(self):
        """The reply that has come, or that the connection is closed; then it is opened again."""
        self.waits = False
        try:
            return told(self.connection.read())
        except (resp.Disconnected, ConnectionError):
            self.connection.__exit__()
            self.connect()
            return "closed"


def told(reply):
    """A reply as text that can be compared."""
    if isinstance(reply.value, list):
        return [told(item) for item in reply.value]
    return f"{reply.type}{reply.value if isinstance(reply.value, int) else (reply.value or b'').decode()}"


class Play:
    """Readers and the connection that does the steps."""

    def __init__(self, port, expected):
        self.admin, self.writer = resp.Connection(port), resp.Connection(port)
        self.readers = [Reader(port, number) for number in range(READERS)]
        self.serial = 1000
        # What each step and each beginning of waiting led to; what it should lead to, if that is known.
        self.transcript, self.expected = [], expected

    def blocked(self):
        info = self.admin.ask("INFO", "clients").value.decode()
        return int(next(line for line in info.splitlines() if line.startswith("blocked_clients:")).split(":")[1])

    def waiting(self):
        return [reader for reader in self.readers if reader.waits]

    def ready(self, seconds):
        """Waiting readers that have a reply."""
        poll, sockets = select.poll(), {}
        for reader in self.waiting():
            sockets[reader.connection.socket.fileno()] = reader
            poll.register(reader.connection.socket, select.POLLIN)
        return sorted((sockets[fd] for fd, _ in poll.poll(seconds * 1000)), key=lambda reader: reader.number)

    def note(self, what, found):
        self.transcript.append((what, found))
        if self.expected:
            self.compare(len(self.transcript) - 1)

    def compare(self, at):
        what, expected = self.expected[at]
        found = self.transcript[at][1]
        if found != expected:
            differing = found
            if isinstance(found, dict):
                names = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
                expected = {name: expected.get(name) for name in names}
                differing = {name: found.get(name) for name in names}
            raise AssertionError(f"step {at}, {what}: redis-server {expected}, here {differing}")

    def wait_again(self):
        """Those that have their reply send their request again, one after the other."""
        count = self.blocked()
        found = {}
        for reader in self.readers:
            if reader.waits:
                continue
            reader.connection.send(resp.encode(*reader.request))
            reader.waits = True
            deadline = time.monotonic() + SILENCE_SECONDS
            while self.blocked() != count + 1:
                if reader in self.ready(0):
                    found[reader.number] = reader.hear()
                    break
                if time.monotonic() > deadline:
                    raise AssertionError(f"reader {reader.number} neither waits nor has a reply")
            else:
                count += 1
        self.note("wait again", found)

    def words(self, request):
        """The words of a request. EVAL's text is in quotation marks."""
        if "ID" in request.split():
            self.serial += 1
            request = " ".join(f"{self.serial}-0" if word == "ID" else word for word in request.split(" "))
        before, *quoted = request.split('"')
        if quoted:
            return [*before.split(), quoted[0], *quoted[1].split()]
        name, *words = request.split()
        if name == "UNBLOCK":
            return ["CLIENT", "UNBLOCK", self.readers[int(words[0])].id, words[1]]
        if name == "CUT":
            return ["CLIENT", "KILL", "ID", self.readers[int(words[0])].id]
        return [name, *words]

    def step(self, requests):
        """Does a step and notes the replies, then those of the readers. DROP removes a key that is no stream."""
        before = len(self.waiting())
        replies = []
        for request in requests:
            if request.startswith("DROP "):
                key = request.split()[1]
                if self.writer.ask("TYPE", key).value in (b"stream", b"none"):
                    continue
                request = f"DEL {key}"
            replies.append(told(self.writer.ask(*self.words(request))))
        self.note(requests, replies)
        served = before - self.settled()
        found, deadline = {}, time.monotonic() + SILENCE_SECONDS
        while len(found) < served and time.monotonic() < deadline:
            for reader in self.ready(1):
                found[reader.number] = reader.hear()
        self.note(requests, found)

    def settled(self):
        """How many wait when the step has had its effect: redis-server has served readers before its next reply."""
        blocked = self.blocked()
        if self.expected:
            served = len(self.expected[len(self.transcript)][1])
            deadline = time.monotonic() + SILENCE_SECONDS
            while blocked != len(self.waiting()) - served and time.monotonic() < deadline:
                blocked = self.blocked()
        return blocked

    def run(self, steps):
        for request in GROUPS:
            self.writer.ask(*request.split())
        self.wait_again()
        for step in steps:
            self.step(step)
            self.wait_again()
        # Nothing has come that was not read.
        self.step([f"UNBLOCK {number} TIMEOUT" for number in range(READERS)])
        return self.transcript

    def close(self):
        for connection in [self.admin, self.writer, *(reader.connection for reader in self.readers)]:
            connection.__exit__()


def play(binary, steps, expected, *options):
    server = servers.Server(binary, "--appendonly", "no", "--save", "", *options)
    try:
        one = Play(server.port, expected)
        try:
            return one.run(steps)
        finally:
            one.close()
    finally:
        server.stop()


def mistakes_are_found(transcript):
    """Two readers of a group with their replies exchanged, and a reader without a reply."""
    differ = (at for at, (_, found) in enumerate(transcript) if isinstance(found, dict) and len(set(map(str, found.values()))) > 1)
    at = next(differ)
    replies = transcript[at][1]
    first = next(iter(replies))
    other = next(number for number, reply in replies.items() if reply != replies[first])
    for change in ({first: replies[other], other: replies[first]}, {first: None}):
        spoiled = copy.copy(transcript)
        spoiled[at] = (spoiled[at][0], {**replies, **change})
        one = Play.__new__(Play)
        one.transcript, one.expected = spoiled, transcript
        try:
            one.compare(at)
        except AssertionError:
            continue
        raise AssertionError(f"{change} was not found")


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"version seed {seed}", flush=True)
    source = random.Random(seed)
    steps = [*CHOSEN, *(step for _ in range(int(sys.argv[1])) for step in random_step(source))]
    expected, passed = None, True
    checks = [("redis-server", "play", "redis-server", [])]
    if Path(BINARY).name.startswith("redis"):
        checks += [("again", "compared", BINARY, [])]
    else:
        checks += [(f"threads-{threads}", "compared", BINARY, ["--threads", threads]) for threads in ("1", "4")]
    for mode, name, binary, options in checks:
        try:
            transcript = play(binary, steps, expected, *options)
            expected = expected or transcript
            count = sum(len(found) for _, found in transcript if isinstance(found, dict))
            print(f"ok {mode} {name}: {len(steps)} steps, {count} replies of readers", flush=True)
            if mode == "redis-server":
                mistakes_are_found(transcript)
                print(f"ok {mode} mistakes_are_found", flush=True)
        except Exception as error:  # The report of a failed check is its whole purpose.
            traceback.print_exc()
            print(f"not ok {mode} {name}: {type(error).__name__}: {error}", flush=True)
            passed = False
            if not expected:
                break
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
