"""The parts of a framework's program for tests/clients/jobs.py, which says what they print.

A framework is a class with

    VERSION, CAPABILITIES                   what the parts of these names print
    AWAY                                    the errors that say that the server is away
    __init__(port)                          of which it makes one for a process
    add(queue, job, delay, priority)        adds a job, with a delay in seconds, and returns its ID
    left(queue)                             counts the jobs that are not done
    result(queue, job, identifier)          the result of a job, or None
    worker(queue, options, work)            does jobs with `work` until it is stopped
    scheduler(queue, job, seconds)          adds a job again and again until it is stopped
    stop()                                  ends a worker or a scheduler, from another thread
"""

import os
import signal
import sys
import threading
import time
import traceback

PAUSE_SECONDS = 0.01
# What frameworks print beside their logs is no answer.
ANSWERS = os.dup(1)
os.dup2(2, 1)


def tell(*words):
    # In one piece, also beside other threads and processes.
    os.write(ANSWERS, (" ".join(map(str, words)) + "\n").encode())


class Work:
    """The work of a worker: it may hold jobs once it has finished enough."""

    def __init__(self, work, hold=None, **_):
        self.seconds, self.hold, self.finished_count = work / 1000, hold, 0

    def started(self, job):
        """Tells that a job begins. Returns the seconds that it takes, and its result."""
        tell("started", time.monotonic_ns(), job)
        is_held = self.hold is not None and self.finished_count >= self.hold
        if is_held:
            tell("holding", job)
        return 1e6 if is_held else self.seconds, job.upper()

    def perform(self, job):
        seconds, result = self.started(job)
        time.sleep(seconds)
        return result

    def finished(self, job):
        tell("finished", time.monotonic_ns(), job)
        self.finished_count += 1


def options(words):
    """Words such as `delay=100` as a dictionary."""
    pairs = [word.split("=") for word in words]
    return {name: value if name == "limit" else int(value) for name, value in pairs}


def insist(framework, call, *words):
    """Asks until there is an answer."""
    while True:
        try:
            return call(*words)
        except framework.AWAY:
            traceback.print_exc()
            time.sleep(PAUSE_SECONDS)


def produce(framework):
    for line in sys.stdin:
        request, queue, *words = line.split()
        if request == "add":
            job, chosen = words[0], options(words[1:])
            asked = time.monotonic_ns()
            try:
                identifier = framework.add(queue, job, chosen.get("delay", 0) / 1000, chosen.get("priority", 0))
                tell("added", asked, job, identifier)
            except framework.AWAY:
                traceback.print_exc()
                time.sleep(PAUSE_SECONDS)
                tell("cut", asked, job)
        elif request == "left":
            tell("left", queue, insist(framework, framework.left, queue))
        elif request == "result":
            tell("result", words[0], insist(framework, framework.result, queue, *words) or "none")


def play(kind):
    part, *words = sys.argv[1:]
    if part == "version":
        return tell(kind.VERSION)
    if part == "capabilities":
        return tell(kind.CAPABILITIES)
    framework = kind(int(words[0]))
    if part == "producer":
        return produce(framework)

    def wait():
        # Without a lock, which a process that is forked meanwhile would wait for.
        while os.read(0, 1):
            pass
        framework.stop()

    # A framework that has not begun yet ends, too.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    threading.Thread(target=wait, daemon=True).start()
    if part == "worker":
        chosen = options(words[2:])
        framework.worker(words[1], chosen, Work(**chosen))
    else:
        framework.scheduler(words[1], words[2], int(words[3]) / 1000)
