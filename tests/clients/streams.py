#!/usr/bin/env python3
"""A queue on a stream with a consumer group, through kills: none lost, and none that is done is done again.

    streams.py KILLS THREADS COMMAND...    THREADS is such as 1,4; COMMAND a client's program, as `node node/streams.mjs`

For each of THREADS a server ($CLIENTS_SERVER, with that many threads, `appendonly yes` and `appendfsync always`) is
started, and KILLS times it is killed and started again on the same directory. As often a worker is killed that has
entries which it did not acknowledge. `tests/clients/run` has a short and a long one for each of three languages; for more, for example:

    CLIENTS_SERVER=target/release/ferrite-server tests/clients/streams.py 200 4 node tests/clients/node/streams.mjs

COMMAND is started with more words, and prints lines. It ends when its input ends.

    COMMAND version                prints the client's version.
    COMMAND producer PORT NAME     adds entries with the numbers NAME000000, NAME000001, ... to the stream.
        added NUMBER ID            The reply to XADD.
        cut NUMBER                 The connection broke: the entry is there, or not. It is not sent again.
    COMMAND worker PORT NAME [N]   reads with XREADGROUP, takes over with XAUTOCLAIM, and acknowledges each entry with XACK.
        got TIME new ID NUMBER     An entry of XREADGROUP. TIME is when the request was sent, by CLOCK_MONOTONIC in ns.
        got TIME claimed ID NUMBER The same of XAUTOCLAIM.
        acked TIME ID              The reply to XACK. TIME is when it came.
        unsure ID                  The connection broke: the entry is acknowledged, or not.
        holding                    It has acknowledged N entries, has others, and does nothing more.

No check measures a duration: moments are compared by one clock.
"""

import copy
import os
import queue
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import servers

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import resp  # noqa: E402

BINARY = os.environ["CLIENTS_SERVER"]
# The Go programs want to know of the other checks how long a pipeline is, also where `run` has not started this one.
ENVIRONMENT = {"CLIENTS_DEEPEST": "1", **os.environ}
STREAM, GROUP = "numbers", "workers"
PRODUCERS, WORKERS = 2, 2
# A worker that is to be killed acknowledges so many entries before it holds some.
HOLD_AFTER = 5
# Entries that are added between one kill and the next, at least.
BETWEEN_KILLS = 60
# How often the server is asked whether all is done, and the end of a wait for an event that does not come.
PAUSE_SECONDS = 0.05
SILENCE_SECONDS = 60


@dataclass
class Facts:
    """All that the programs told, and the server at the end."""

    added: dict = field(default_factory=dict)
    cut: set = field(default_factory=set)
    # (when asked, how, ID, number) of each delivery.
    got: list = field(default_factory=list)
    # The first reply to XACK for each ID.
    acked: dict = field(default_factory=dict)
    unsure: set = field(default_factory=set)
    # How many of `got` were claimed.
    claimed: int = 0
    # Of the server: IDs and numbers of the stream, XLEN, the count of XPENDING, and XINFO GROUPS.
    entries: list = field(default_factory=list)
    length: int = 0
    pending: int = 0
    group: dict = field(default_factory=dict)

    def hear(self, line):
        kind, *words = line.split()
        if kind == "added":
            number, identifier = words
            self.added[number] = identifier
        elif kind == "cut":
            self.cut.add(*words)
        elif kind == "got":
            asked, how, identifier, number = words
            self.got.append((int(asked), how, identifier, number))
            self.claimed += how == "claimed"
        elif kind == "acked":
            at, identifier = words
            self.acked.setdefault(identifier, int(at))
        elif kind == "unsure":
            self.unsure.add(*words)
        elif kind != "holding":
            raise AssertionError(f"not a line of a client's program: {line!r}")


# The checks: each returns a problem, or nothing.


def none_lost(facts):
    """Each entry whose XADD was answered is in the stream with its ID and was delivered, and there are no others."""
    stream = dict(facts.entries)
    delivered = {(identifier, number) for _, _, identifier, number in facts.got}
    for number, identifier in facts.added.items():
        if stream.get(identifier) != number:
            return f"{number} was added as {identifier}; the stream has {stream.get(identifier)} there"
        if (identifier, number) not in delivered:
            return f"{number} was added as {identifier}, and never delivered"
    numbers = Counter(stream.values())
    for number, times in numbers.items():
        if times > 1:
            return f"{number} is in the stream {times} times"
    strangers = numbers.keys() - facts.added.keys() - facts.cut
    return f"nobody has added {strangers}" if strangers else None


def new_once(facts):
    """XREADGROUP gives each entry as a new one once."""
    for identifier, times in Counter(identifier for _, how, identifier, _ in facts.got if how == "new").items():
        if times > 1:
            return f"{identifier} was delivered as new {times} times"
    return None


def none_done_again(facts):
    """An entry is not delivered by a request that was sent after the reply to its XACK."""
    for asked, how, identifier, _ in facts.got:
        if asked > facts.acked.get(identifier, asked):
            return f"{identifier} was acknowledged, and delivered again ({how}) to a later request"
    return None


def figures_agree(facts):
    """XLEN, XPENDING, XINFO GROUPS and what clients saw say the same."""
    stream = {identifier for identifier, _ in facts.entries}
    if not len(stream) == facts.length == facts.group["entries-read"]:
        return f"{len(stream)} entries, XLEN {facts.length}, {facts.group}"
    if facts.pending or facts.group["pending"] or facts.group["lag"]:
        return f"{facts.pending} are pending, {facts.group}"
    missing = stream - facts.acked.keys() - facts.unsure
    return f"nobody has acknowledged {missing}, and they are not pending" if missing else None


CHECKS = [none_lost, new_once, none_done_again, figures_agree]


def spoil(facts):
    """Facts with one mistake each, and the check that must find it."""
    number, identifier = next(pair for pair in facts.added.items() if pair[1] in facts.acked)

    def changed(check, change):
        copied = copy.deepcopy(facts)
        change(copied)
        return check, copied

    def undelivered(spoiled):
        spoiled.got = [entry for entry in spoiled.got if entry[2] != identifier]

    def delivered_late(spoiled):
        spoiled.got.append((spoiled.acked[identifier] + 1, "claimed", identifier, number))

    return [
        changed(none_lost, lambda spoiled: spoiled.entries.remove((identifier, number))),
        changed(none_lost, undelivered),
        changed(none_lost, lambda spoiled: spoiled.entries.append(("9-9", number))),
        changed(none_lost, lambda spoiled: spoiled.entries.append(("9-9", "another"))),
        changed(new_once, lambda spoiled: spoiled.got.extend([(0, "new", identifier, number)] * 2)),
        changed(none_done_again, delivered_late),
        changed(figures_agree, lambda spoiled: setattr(spoiled, "pending", 1)),
        changed(figures_agree, lambda spoiled: setattr(spoiled, "length", spoiled.length - 1)),
        changed(figures_agree, lambda spoiled: (spoiled.acked.pop(identifier), spoiled.unsure.discard(identifier))),
    ]


class Program:
    """A client's program in one of its parts. A thread puts its lines into a queue."""

    def __init__(self, scene, *part):
        self.name = " ".join(map(str, part))
        self.process = subprocess.Popen(
            [*scene.command, *map(str, part)], env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )  # fmt: skip
        self.is_expected_to_end = False
        self.is_holding = False
        self.reader = threading.Thread(target=self.read, args=(scene.lines,))
        self.reader.start()

    def read(self, lines):
        for line in self.process.stdout:
            # A killed program may have begun a line.
            if line.endswith("\n"):
                lines.put((self, line.rstrip("\n")))
        lines.put((self, None))

    def kill(self):
        self.is_expected_to_end = True
        self.process.kill()
        self.finish()

    def end(self):
        self.is_expected_to_end = True
        self.process.stdin.close()

    def finish(self):
        """Returns the status of a program that is about to end."""
        status = self.process.wait(SILENCE_SECONDS)
        self.reader.join()
        self.process.stdout.close()
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return status


class Scene:
    """A server, producers and workers, and what they told so far."""

    def __init__(self, command, threads):
        self.command = command
        self.lines = queue.Queue()
        self.facts = Facts()
        self.programs = []
        self.serial = 0
        options = [] if Path(BINARY).name.startswith("redis") else ["--threads", threads]
        self.server = servers.Server(
            BINARY, "--appendonly", "yes", "--appendfsync", "always", "--save", "", *options, port=servers.fixed_ports(1)[0]
        )  # fmt: skip

    def begin(self, *part):
        """Starts a program with a name that no other has."""
        self.serial += 1
        part, more = part[0], part[1:]
        program = Program(self, part, self.server.port, f"{part[0]}{self.serial}", *more)
        self.programs.append(program)
        return program

    def listen(self, seconds):
        """Hears the next line."""
        program, line = self.lines.get(timeout=max(seconds, 0))
        if line is not None:
            self.facts.hear(line)
            program.is_holding |= line == "holding"
        elif not program.is_expected_to_end:
            raise AssertionError(f"the {program.name} has ended")

    def until(self, event, condition):
        """Hears lines until the condition holds."""
        deadline = time.monotonic() + SILENCE_SECONDS
        while not condition():
            try:
                self.listen(deadline - time.monotonic())
            except queue.Empty:
                raise AssertionError(f"it does not happen that {event}") from None

    def ask(self, *words):
        with resp.Connection(self.server.port) as connection:
            reply = connection.ask(*words)
        if reply.is_error():
            raise AssertionError(f"{words}: {reply.value}")
        return plain(reply)

    def restart(self):
        self.server.kill()
        self.server.start()
        self.ready()

    def ready(self):
        with resp.Connection(self.server.port) as connection:
            while connection.ask("PING").is_error(b"LOADING"):
                time.sleep(0.005)

    def is_done(self):
        """Whether all entries were delivered, and none is pending."""
        last = self.ask("XINFO", "STREAM", STREAM)
        last = last[last.index("last-generated-id") + 1]
        return self.ask("XPENDING", STREAM, GROUP)[0] == 0 and self.group()["last-delivered-id"] == last

    def group(self):
        (group,) = self.ask("XINFO", "GROUPS", STREAM)
        return dict(zip(group[::2], group[1::2]))

    def drain(self):
        """Ends producers, then workers when nothing is left to do, and asks the server how things are."""
        for program in self.programs:
            if program.name.startswith("producer"):
                program.end()
        for program in self.programs:
            if program.name.startswith("producer"):
                self.succeed(program)
        # As long as entries are acknowledged it goes on.
        deadline = time.monotonic() + SILENCE_SECONDS
        while not self.is_done():
            acknowledged = len(self.facts.acked)
            pause = time.monotonic() + PAUSE_SECONDS
            while time.monotonic() < min(pause, deadline):
                try:
                    self.listen(pause - time.monotonic())
                except queue.Empty:
                    break
            if len(self.facts.acked) > acknowledged:
                deadline = time.monotonic() + SILENCE_SECONDS
            if time.monotonic() > deadline:
                raise AssertionError("entries stay that nobody acknowledges")
        for program in self.programs:
            program.end()
        for program in self.programs:
            self.succeed(program)
        while not self.lines.empty():
            self.listen(0)
        self.facts.entries = [(identifier, fields[1]) for identifier, fields in self.ask("XRANGE", STREAM, "-", "+")]
        self.facts.length = self.ask("XLEN", STREAM)
        self.facts.pending = self.ask("XPENDING", STREAM, GROUP)[0]
        self.facts.group = self.group()

    def succeed(self, program):
        status = program.finish()
        if status != 0:
            raise AssertionError(f"the {program.name} has ended with {status}")

    def stop(self):
        for program in self.programs:
            if program.process.returncode is None:
                program.kill()
        # A server that is killed leaves a ring in the system's memory for its next start.
        self.server.process.terminate()
        try:
            self.server.process.wait(SILENCE_SECONDS)
        except subprocess.TimeoutExpired:
            print("the server does not end", file=sys.stderr)
        self.server.stop()


def plain(reply):
    if isinstance(reply.value, list):
        return [plain(item) for item in reply.value]
    return reply.value.decode() if isinstance(reply.value, bytes) else reply.value


def play(scene, kills):
    """Producers and workers at work, through kills."""
    facts = scene.facts
    scene.ready()
    scene.ask("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")
    for _ in range(WORKERS):
        scene.begin("worker")
    victim = scene.begin("worker", HOLD_AFTER)
    for _ in range(PRODUCERS):
        scene.begin("producer")
    for kill in range(kills):
        scene.until("a worker holds entries", lambda: victim.is_holding)
        enough = len(facts.added) + BETWEEN_KILLS
        before = facts.claimed
        scene.programs.remove(victim)
        if kill % 2:
            scene.restart()
            victim.kill()
        else:
            victim.kill()
            scene.restart()
        if kill + 1 < kills:
            victim = scene.begin("worker", HOLD_AFTER)
        # What the killed worker had has gone to others.
        scene.until("entries are added and taken over", lambda: len(facts.added) >= enough and facts.claimed > before)
    scene.drain()


def run(command, mode, kills):
    """The facts of one scene; nothing if it could not be played to its end."""
    scene = None
    try:
        scene = Scene(command, mode.removeprefix("threads-"))
        play(scene, kills)
    except Exception as error:  # The report of a failed check is its whole purpose.
        traceback.print_exc()
        print(f"not ok {mode} play: {type(error).__name__}: {error}", flush=True)
        if scene:
            print(scene.server.output(), file=sys.stderr)
        return None
    finally:
        if scene:
            scene.stop()
    facts = scene.facts
    print(
        f"ok {mode} play: {kills} kills, {len(facts.added)} added, {len(facts.cut)} cut, {len(facts.got)} delivered, "
        f"{facts.claimed} of them claimed",
        flush=True,
    )
    return facts


def main():
    kills, threads, command = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
    print("version", subprocess.check_output([*command, "version"], env=ENVIRONMENT, text=True).strip(), flush=True)
    passed = True
    for mode in [f"threads-{count}" for count in threads]:
        facts = run(command, mode, kills)
        if facts is None:
            return 1
        results = [(check.__name__, check(facts)) for check in CHECKS]
        blind = [check.__name__ for check, spoiled in spoil(facts) if not check(spoiled)]
        results.append(("mistakes_are_found", f"not by {blind}" if blind else None))
        for name, problem in results:
            print(f"not ok {mode} {name}: {problem}" if problem else f"ok {mode} {name}", flush=True)
            passed = passed and not problem
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
