#!/usr/bin/env python3
"""A framework for jobs through kills: none lost, none that is done is done again, delays, priorities, limits and results kept.

    jobs.py KILLS THREADS COMMAND...    THREADS is such as 1,4; COMMAND a framework's program, as `node node/jobs_bullmq.mjs`

For each of THREADS a server ($CLIENTS_SERVER, with that many threads, `appendonly yes` and `appendfsync always`) is
started, and KILLS times it is killed and started again on the same directory, while jobs are added and done. As often a
worker is killed in the middle of a job. `tests/clients/run` has a short and a long one for each framework; for more, for example:

    CLIENTS_SERVER=target/release/ferrite-server tests/clients/jobs.py 100 4 node tests/clients/node/jobs_bullmq.mjs

COMMAND is started with more words, and prints lines. It ends when its input ends. TIME is by CLOCK_MONOTONIC in ns.

    COMMAND version                   prints the framework's version.
    COMMAND capabilities              prints the words of CAPABILITIES that apply, in one line.
    COMMAND producer PORT             does what each line of its input says, one after the other, and answers with a line.
        add QUEUE JOB [delay=MS] [priority=N]    adds a job; priority 1 goes before 2.
            added TIME JOB ID         The framework says that it has the job. TIME is when that was asked for, ID the framework's.
            cut TIME JOB              The connection broke: the job is there, or not. It is not added again.
        repeat QUEUE JOB MS           adds a job that is due every MS from now on. It is asked for until the framework has it.
            repeating TIME JOB
        left QUEUE                    counts the jobs that are not done: those that wait, have a delay, run, or have failed.
            left QUEUE COUNT
        result QUEUE JOB ID           reads the result of a job: its name in capitals.
            result JOB VALUE          VALUE is `none` if there is none.
    COMMAND scheduler PORT QUEUE JOB MS    adds a job that is due every MS, with `scheduler` in place of `repeat`.
    COMMAND worker PORT QUEUE WORD... does jobs, each for some time. WORD is of WORDS.
        started TIME JOB              The function of the job begins.
        finished TIME JOB             The server has answered that the job is done.
        again JOB                     The framework has found that a job makes no progress, and gives it to a worker again.
        holding JOB                   It has finished as many jobs as `hold` says, and does not end this one.

A job may run again if its worker was killed or the server was away in the middle of it, or if the framework says `again`.
A framework without `at-least-once` may lose such a job instead, and never runs one again.

No check measures a duration: moments are compared by one clock.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from pathlib import Path

import servers
from jobs_facts import CHECKS, LIMIT, LIMIT_MS, PRIORITIES, REPEATED, Facts, Job, Run, spoil

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import resp  # noqa: E402

BINARY = os.environ["CLIENTS_SERVER"]
# The Go programs want to know of the other checks how long a pipeline is, also where `run` has not started this one.
ENVIRONMENT = {"CLIENTS_DEEPEST": "1", **os.environ}
CAPABILITIES = {
    "at-least-once": "a job whose worker is killed runs again",
    "given-back": "a worker gives its jobs back when the connection breaks, and may acknowledge them nevertheless",
    "lost": "`lost=N` jobs of a worker, at most, are lost without a word when it or the server is killed",
    "kept": "a job that was on its way to a worker when the connection broke stays with the worker until that ends",
    "delays": "jobs with a delay",
    "doubles": "a job may run twice when the server is away while it is added, or, with a delay, before it runs",
    "order": "one worker does jobs in the order in which they were added",
    "priorities": "jobs of a lower number go before others",
    "repeats": "jobs that are due again and again; `repeats=MS` says how often at most",
    "limits": "so many jobs in so much time, by all workers of a queue together",
    "results": "the result of a job can be read later",
    "forgets": "the result of a job in the middle of which the server was away may be missing",
    "scheduler": "jobs that are repeated are added by a process of its own",
    "restarts": "a program may end when the server is away, and is started again",
}
WORDS = "concurrency=N work=MS hold=N limit=COUNT/MS priorities=N"
WORKERS, CONCURRENCY, WORK_MS = 2, 4, 3
# A worker that is to be killed finishes so many jobs before it holds some.
HOLD_AFTER = 3
# Jobs that are added between one kill and the next, at least, and that are on their way at most.
BETWEEN_KILLS, OUTSTANDING = 60, 40
# Each fifth job has a delay, of so many steps at most.
DELAYED_EACH, DELAY_STEP_MS, DELAY_STEPS = 5, 100, 10
# Jobs of the backlog for one worker, and jobs for workers with a limit.
BACKLOG, LIMITED = 30, 45
# How often the server is asked whether all is done, and the end of a wait for an event that does not come.
PAUSE_SECONDS = 0.05
SILENCE_SECONDS = 180


class Program:
    """A framework's program in one of its parts, with processes of its own. A thread puts its lines into a queue."""

    def __init__(self, scene, name, *part):
        self.name, self.part = name, part
        self.process = subprocess.Popen(
            [*scene.command, *map(str, part)], env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=scene.errors, start_new_session=True,
        )  # fmt: skip
        self.is_expected_to_end = False
        # Jobs that it has begun and not finished, and those among them that it does not end.
        self.running, self.holding = defaultdict(list), set()
        self.reader = threading.Thread(target=self.read, args=(scene.lines,))
        self.reader.start()

    def read(self, lines):
        for line in self.process.stdout:
            # A killed program may have begun a line.
            if line.endswith("\n"):
                lines.put((self, line.rstrip("\n")))
        lines.put((self, None))

    def write(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def kill(self):
        """Kills it and all that it has started: the processes of its session, also those with a group of their own."""
        self.is_expected_to_end = True
        for process in [self.process.pid, *map(int, filter(str.isdigit, os.listdir("/proc")))]:
            try:
                if os.getsid(process) == self.process.pid:
                    os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.finish()

    def end(self):
        self.is_expected_to_end = True
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def finish(self):
        """Returns the status of a program that is about to end."""
        status = self.process.wait(SILENCE_SECONDS)
        self.reader.join()
        self.process.stdout.close()
        if not self.process.stdin.closed:
            self.end()
        return status


class Scene:
    """A server, a producer and workers, and what they told so far."""

    def __init__(self, command, threads, capabilities):
        self.command = command
        self.lines = queue.Queue()
        self.facts = Facts(capabilities)
        self.programs = []
        # Jobs and programs that were begun, and jobs of each queue that are done.
        self.serials, self.done = Counter(), Counter()
        # Lines that the producer has yet to answer, in order.
        self.asked = []
        self.asked_of_job = {}
        self.left = {}
        self.is_adding = False
        # The worker that is to be killed next.
        self.victim = None
        options = [] if Path(BINARY).name.startswith("redis") else ["--threads", threads]
        self.server = servers.Server(
            BINARY, "--appendonly", "yes", "--appendfsync", "always", "--save", "", *options, port=servers.fixed_ports(1)[0]
        )  # fmt: skip
        self.errors = (self.server.directory / "programs").open("ab")

    def can(self, capability):
        return capability in self.facts.capabilities

    def begin(self, *part):
        """Starts a program with a name that no other has."""
        self.serials[part[0]] += 1
        program = Program(self, f"{part[0]}{self.serials[part[0]]}", part[0], self.server.port, *part[1:])
        self.programs.append(program)
        return program

    def work(self, name, concurrency, *words):
        return self.begin("worker", name, f"concurrency={concurrency}", f"work={WORK_MS}", *words)

    # The producer.

    def ask(self, *words):
        self.asked.append(words)
        if len(self.asked) == 1:
            self.producer.write(*words)

    def answer(self):
        """An answer has come: the next line goes to the producer."""
        self.asked.pop(0)
        if self.asked:
            self.producer.write(*self.asked[0])
        elif self.is_adding:
            self.add_next()

    def add(self, name, delay=0, priority=0):
        job = f"{name}{self.serials[name]:06}"
        self.serials[name] += 1
        self.asked_of_job[job] = (name, delay, priority)
        self.ask("add", name, job, *([f"delay={delay}"] if delay else []), *([f"priority={priority}"] if priority else []))

    def repeat(self, name, every):
        """A job that is repeated, and a worker for it."""
        job = f"{name}0"
        if self.can("scheduler"):
            self.facts.repeated[job] = (time.monotonic_ns(), every)
            self.begin("scheduler", name, job, every)
        else:
            self.ask("repeat", name, job, every)
        self.work(name, 1)

    def add_next(self):
        """Adds a job to the queue `jobs`, unless enough are on their way."""
        if self.asked or self.serials["jobs"] - self.done["jobs"] > OUTSTANDING:
            return
        serial = self.serials["jobs"]
        is_delayed = self.can("delays") and serial % DELAYED_EACH == 0
        self.add("jobs", delay=serial // DELAYED_EACH % DELAY_STEPS * DELAY_STEP_MS if is_delayed else 0)

    # What the programs tell.

    def hear(self, program, line):
        facts = self.facts
        kind, *words = line.split()
        if kind == "started":
            at, job = words
            run = Run(job, program.name, int(at))
            program.running[job].append(run)
            facts.runs.append(run)
        elif kind == "finished":
            at, job = words
            program.running[job].pop(0).finished = int(at)
            self.done[job.rstrip("0123456789")] += 1
            if self.is_adding:
                self.add_next()
        elif kind == "holding":
            program.holding.update(words)
        elif kind == "again":
            facts.again.update(words)
        elif kind == "added":
            at, job, identifier = words
            name, delay, priority = self.asked_of_job[job]
            facts.added[job] = Job(name, int(at), time.monotonic_ns(), identifier, delay, priority)
            self.answer()
        elif kind == "cut":
            facts.cut.add(words[1])
            self.answer()
        elif kind == "repeating":
            at, job = words
            facts.repeated[job] = (int(at), int(self.asked[0][3]))
            self.answer()
        elif kind == "left":
            name, count = words
            self.left[name] = int(count)
            # Some were cut, and a framework that loses jobs of killed workers has lost some.
            self.done[name] = self.serials[name] - int(count)
            self.answer()
        elif kind == "result":
            job, value = words
            facts.results[job] = value
            self.answer()
        else:
            raise AssertionError(f"not a line of a framework's program: {line!r}")

    def listen(self, seconds):
        """Hears the next line."""
        program, line = self.lines.get(timeout=max(seconds, 0))
        if line is not None:
            self.hear(program, line)
        elif not program.is_expected_to_end:
            if not self.can("restarts") or program.name.startswith("producer"):
                raise AssertionError(f"the {program.name} has ended with {program.finish()}")
            program.finish()
            self.ended(program)
            self.programs.remove(program)
            again = self.begin(program.part[0], *program.part[2:])
            if program is self.victim:
                self.victim = again

    def until(self, event, condition):
        """Hears lines until the condition holds."""
        deadline = time.monotonic() + SILENCE_SECONDS
        while not condition():
            try:
                self.listen(deadline - time.monotonic())
            except queue.Empty:
                raise AssertionError(f"it does not happen that {event}") from None

    def pause(self):
        """Hears lines for a while."""
        end = time.monotonic() + PAUSE_SECONDS
        while time.monotonic() < end:
            try:
                self.listen(end - time.monotonic())
            except queue.Empty:
                return

    # Kills.

    def restart(self):
        since = time.monotonic_ns()
        self.server.kill()
        self.server.start()
        with resp.Connection(self.server.port) as connection:
            while connection.ask("PING").is_error(b"LOADING"):
                time.sleep(0.005)
        self.facts.away.append((since, time.monotonic_ns()))
        self.ask("left", "jobs")
        self.facts.may_be_lost += (WORKERS + 1) * self.facts.capabilities.get("lost", 0)

    def kill_victim(self):
        """Kills a worker in the middle of a job."""
        worker = self.victim
        self.programs.remove(worker)
        worker.kill()
        while not self.lines.empty():
            self.listen(0)
        self.ended(worker)

    def ended(self, worker):
        """What a worker that has ended in the middle of its jobs leaves."""
        self.facts.may_be_lost += self.facts.capabilities.get("lost", 0)
        for run in [run for runs in worker.running.values() for run in runs]:
            run.is_disturbed = True

    # The end.

    def replace_workers(self):
        """Others take the place of all workers."""
        for program in [program for program in self.programs if program.part[0] == "worker"]:
            program.end()
            self.succeed(program)
            self.programs.remove(program)
            self.begin(program.part[0], *program.part[2:])

    def succeed(self, program):
        status = program.finish()
        if status != 0:
            raise AssertionError(f"the {program.name} has ended with {status}")

    def drain(self, names):
        """Waits until no job is left."""
        self.until("the producer has answered", lambda: not self.asked)
        deadline, before = time.monotonic() + SILENCE_SECONDS, 0
        while True:
            for name in names:
                self.ask("left", name)
            self.until("the producer tells how many jobs are left", lambda: not self.asked)
            if not any(self.left[name] for name in names):
                return
            if len(self.facts.runs) > before:
                deadline, before = time.monotonic() + SILENCE_SECONDS, len(self.facts.runs)
            if time.monotonic() > deadline:
                raise AssertionError(f"jobs stay: {self.left}")
            self.pause()

    def read_results(self):
        for job, about in self.facts.added.items():
            self.ask("result", about.queue, job, about.identifier)
        self.until("the producer reads the results", lambda: not self.asked)

    def end(self):
        for program in self.programs:
            program.end()
        for program in self.programs:
            self.succeed(program)
        while not self.lines.empty():
            self.listen(0)

    def stop(self):
        for program in self.programs:
            if program.process.returncode is None:
                program.kill()
        self.errors.close()
        # A server that is killed leaves a ring in the system's memory for its next start.
        self.server.process.terminate()
        try:
            self.server.process.wait(SILENCE_SECONDS)
        except subprocess.TimeoutExpired:
            print("the server does not end", file=sys.stderr)
        self.server.stop()

    def output(self):
        """What the programs and the server have said beside their lines."""
        return (self.server.directory / "programs").read_text(errors="replace")[-8000:] + self.server.output()


def play(scene, kills):
    """A producer and workers at work, through kills."""
    facts, queues = scene.facts, ["jobs"]
    scene.producer = scene.begin("producer")
    for _ in range(WORKERS):
        scene.work("jobs", CONCURRENCY)
    if scene.can("order") or scene.can("priorities"):
        for number in range(BACKLOG):
            scene.add("ranks", priority=PRIORITIES[number % len(PRIORITIES)] if scene.can("priorities") else 0)
        scene.until("the backlog is added", lambda: not scene.asked)
        scene.work("ranks", 1, *([f"priorities={len(PRIORITIES)}"] if scene.can("priorities") else []))
    if scene.can("limits"):
        queues.append("limited")
        for _ in range(LIMITED):
            scene.add("limited")
        facts.limited_from = time.monotonic_ns()
        for _ in range(WORKERS):
            scene.work("limited", CONCURRENCY, f"limit={LIMIT}/{LIMIT_MS}")
    scene.until("the backlog is done", lambda: not scene.asked and scene.done["ranks"] == scene.serials["ranks"])
    if scene.can("repeats"):
        scene.repeat("ticks", facts.capabilities["repeats"])
    scene.is_adding = True
    scene.add_next()
    for kill in range(kills):
        scene.victim = scene.work("jobs", CONCURRENCY, f"hold={HOLD_AFTER}")
        scene.until("a worker holds a job", lambda: scene.victim.holding)
        held = scene.victim.holding
        for step in [scene.restart, scene.kill_victim] if kill % 2 else [scene.kill_victim, scene.restart]:
            step()
        enough = len(facts.added) + BETWEEN_KILLS
        scene.until("jobs are added", lambda: len(facts.added) >= enough)
        if scene.can("at-least-once"):
            # What the killed worker had has gone to others.
            scene.until("held jobs run again", lambda: held <= facts.run_again())
        if scene.can("kept"):
            scene.replace_workers()
    scene.until("jobs are added", lambda: len(facts.of_queue("jobs")) >= BETWEEN_KILLS)
    if scene.can("repeats"):
        scene.until("a job is repeated", lambda: len(facts.runs_of("ticks")) >= REPEATED)
    scene.is_adding = False
    scene.drain(queues)
    if scene.can("results"):
        scene.read_results()
    scene.end()
    facts.disturb()


def run(command, mode, kills, capabilities):
    """The facts of one scene; nothing if it could not be played to its end."""
    scene = None
    try:
        scene = Scene(command, mode.removeprefix("threads-"), capabilities)
        play(scene, kills)
    except Exception as error:  # The report of a failed check is its whole purpose.
        traceback.print_exc()
        print(f"not ok {mode} play: {type(error).__name__}: {error}", flush=True)
        if scene:
            print(scene.output(), file=sys.stderr)
        return None
    finally:
        if scene:
            scene.stop()
    facts = scene.facts
    disturbed = sum(run.is_disturbed for run in facts.runs)
    print(
        f"ok {mode} play: {kills} kills, {len(facts.added)} added, {len(facts.cut)} cut, {len(facts.runs)} runs, "
        f"{disturbed} of them disturbed, {facts.again.total()} given again, {len(facts.results)} results",
        flush=True,
    )
    return facts


def main():
    kills, threads, command = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
    print("version", subprocess.check_output([*command, "version"], env=ENVIRONMENT, text=True).strip(), flush=True)
    told = subprocess.check_output([*command, "capabilities"], env=ENVIRONMENT, text=True).split()
    capabilities = {word.partition("=")[0]: int(word.partition("=")[2] or 0) for word in told}
    unknown = capabilities.keys() - CAPABILITIES.keys()
    if unknown:
        sys.exit(f"not capabilities: {unknown}")
    passed = True
    for mode in [f"threads-{count}" for count in threads]:
        facts = run(command, mode, kills, capabilities)
        if facts is None:
            return 1
        checks = [check for check, capability in CHECKS if capability is None or capability in capabilities]
        results = [(check.__name__, check(facts)) for check in checks]
        blind = [name for check, name, spoiled in spoil(facts) if not check(spoiled)]
        results.append(("mistakes_are_found", f"not {', '.join(blind)}" if blind else None))
        for name, problem in results:
            print(f"not ok {mode} {name}: {problem}" if problem else f"ok {mode} {name}", flush=True)
            passed = passed and not problem
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
