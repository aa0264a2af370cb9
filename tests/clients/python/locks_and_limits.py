"""Locks and rate limits of Python libraries, each used by two processes at once.

    locks_and_limits.py held     a lock excludes: a counter that it guards loses no update; a limit is exact
    locks_and_limits.py ended    the lock of a killed process is free when its time to live ends, and not before; a new
                                 window allows requests again

Each mode is a library. No check measures a duration: moments are compared by the server's clock.
"""

import multiprocessing
import os
import sys
import time
import traceback
from importlib.metadata import version

import redis
import redis_lock
from django.conf import settings
from dogpile.cache import make_region
from flask import Flask
from flask_limiter import Limiter
from redlock import Redlock

PORT = int(os.environ["CLIENTS_PORT"])
URL = f"redis://127.0.0.1:{PORT}/0"
DISTRIBUTIONS = ["redis", "django-redis", "dogpile.cache", "python-redis-lock", "redlock-py", "Flask-Limiter"]
FORK = multiprocessing.get_context("fork")
# The end of a process that hangs.
SILENCE_SECONDS = 60
# A lock that no check outlives, and how often a waiting process asks for it.
LONG_SECONDS = 30
ASK_SECONDS = 0.002
# Increments by each of two processes, at least.
ROUNDS = 20
# Requests that a window allows, and the shortest window of Flask-Limiter.
LIMIT = 10
WINDOW_MS = 1000
# Two clocks of one machine, and the millisecond to which a server rounds a time to live.
CLOCK_MS = 10


def connection():
    return redis.Redis(port=PORT)


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"got {found!r}, expected {expected!r}")


# The locks: each function makes one with a time to live in seconds.


class NoLock:
    """Excludes nothing."""

    def acquire(self):
        return True

    def release(self):
        pass


class RedlockOfOne:
    """redlock-py with one server. Its lock() gives up, so it is asked again."""

    def __init__(self, seconds):
        self.manager = Redlock([connection()], retry_delay=ASK_SECONDS)
        self.milliseconds = int(seconds * 1000)
        self.held = None

    def acquire(self):
        while not self.held:
            self.held = self.manager.lock("lock", self.milliseconds)
        return True

    def release(self):
        held, self.held = self.held, None
        self.manager.unlock(held)


def redis_py(seconds):
    return connection().lock("lock", timeout=seconds, sleep=ASK_SECONDS)


def django_redis(seconds):
    if not settings.configured:
        settings.configure(CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": URL}})
    from django.core.cache import cache

    return cache.lock("lock", timeout=seconds, sleep=ASK_SECONDS)


def dogpile_cache(seconds):
    arguments = {
        "url": URL, "distributed_lock": True, "thread_local_lock": False,
        "lock_timeout": seconds, "lock_sleep": ASK_SECONDS,
    }  # fmt: skip
    return make_region().configure("dogpile.cache.redis", arguments=arguments).backend.get_mutex("lock")


def python_redis_lock(seconds):
    return redis_lock.Lock(connection(), "lock", expire=seconds, signal_expire=LONG_SECONDS * 1000)


LOCKS = {
    "redis-py": redis_py, "django-redis": django_redis, "dogpile.cache": dogpile_cache,
    "python-redis-lock": python_redis_lock, "redlock-py": RedlockOfOne,
}  # fmt: skip
# Those that can lengthen the time to live.
EXTENDING = ["redis-py", "django-redis", "python-redis-lock"]
# The shortest time to live, in seconds. python-redis-lock takes whole seconds.
SHORT_SECONDS = dict.fromkeys(LOCKS, 0.5) | {"python-redis-lock": 1}


# Processes.


class Process:
    """Runs a function in a process of its own, which ends with this one. The function gets a pipe first."""

    def __init__(self, function, *arguments):
        self.pipe, theirs = FORK.Pipe()
        self.process = FORK.Process(target=self.body, args=(theirs, function, arguments), daemon=True)
        self.process.start()
        theirs.close()

    def body(self, pipe, function, arguments):
        self.pipe.close()
        try:
            function(pipe, *arguments)
        except Exception as error:  # The other process reports it.
            traceback.print_exc()
            pipe.send(error)

    def hear(self):
        if not self.pipe.poll(SILENCE_SECONDS):
            raise AssertionError("a process hangs")
        message = self.pipe.recv()
        if isinstance(message, Exception):
            raise message
        return message

    def kill(self):
        self.process.kill()
        self.process.join()


def two(function, *arguments):
    """The results of a function in two processes, which begin together."""
    processes = [Process(function, number, *arguments) for number in range(2)]
    for process in processes:
        equal(process.hear(), "ready")
    for process in processes:
        process.pipe.send("begin")
    return [process.hear() for process in processes]


def begin(pipe):
    pipe.send("ready")
    pipe.recv()


def count(pipe, number, make):
    """Increments a counter by GET and SET under a lock, until both processes have done so often enough."""
    client, lock = connection(), make(LONG_SECONDS)
    begin(pipe)
    while any(int(rounds or 0) < ROUNDS for rounds in client.mget("rounds:0", "rounds:1")):
        equal(lock.acquire(), True)
        counter = int(client.get("counter") or 0)
        time.sleep(0.001)
        client.set("counter", counter + 1)
        client.incr(f"rounds:{number}")
        lock.release()
        # The turn of the other process.
        time.sleep(ASK_SECONDS)
    pipe.send("done")


def hold(pipe, make, seconds):
    """Holds a lock for ever, and tells when its time to live ends, in milliseconds."""
    client, lock = connection(), make(seconds)
    equal(lock.acquire(), True)
    pipe.send(expiry(client))
    pipe.recv()


def wait(pipe, make, seconds):
    """Waits for a lock, and tells when it had it."""
    client, lock = connection(), make(seconds)
    begin(pipe)
    equal(lock.acquire(), True)
    pipe.send(now(client))


def request(pipe, _, strategy):
    """As many requests as a window allows."""
    allows = flask_limiter(strategy, f"{LIMIT} per day")
    begin(pipe)
    pipe.send([allows() for _ in range(LIMIT)])


# The server's data.


def now(client):
    seconds, microseconds = client.time()
    return seconds * 1000 + microseconds // 1000


def expiry(client):
    """The latest end of a time to live. A lock's key has another name in each library."""
    return max((client.pexpiretime(key) for key in client.keys()), default=0)


def counted(make):
    """The counter after two processes have incremented it, and how often they did."""
    client = connection()
    client.flushall()
    two(count, make)
    counter, *rounds = map(int, client.mget("counter", "rounds:0", "rounds:1"))
    return counter, sum(rounds)


# The checks of locks.


def loses_updates():
    """Without a lock updates are lost: the check of a lock can fail."""
    for _ in range(20):
        counter, rounds = counted(lambda _: NoLock())
        if counter < rounds:
            return
    raise AssertionError("two processes without a lock lost no update")


def excludes(library):
    counter, rounds = counted(LOCKS[library])
    equal(counter, rounds)


def extends(library):
    client, lock = connection(), LOCKS[library](LONG_SECONDS)
    equal(lock.acquire(), True)
    before = expiry(client)
    lock.extend(2 * LONG_SECONDS)
    after = expiry(client)
    if not after > before > 0:
        raise AssertionError(f"the lock ended at {before}, and at {after} when extended")
    lock.release()


def killed_holder(library):
    lock = LOCKS[library], SHORT_SECONDS[library]
    # Ready before the lock is taken: its time to live is short.
    waiter = Process(wait, *lock)
    equal(waiter.hear(), "ready")
    holder = Process(hold, *lock)
    ends = holder.hear()
    holder.kill()
    waiter.pipe.send("begin")
    acquired = waiter.hear()
    if acquired < ends:
        raise AssertionError(f"another process had the lock {ends - acquired} ms before its time to live ended")


def late_release(library):
    """A lock that another holder has meanwhile stays with it."""
    client, late, other = connection(), LOCKS[library](SHORT_SECONDS[library]), LOCKS[library](LONG_SECONDS)
    equal(late.acquire(), True)
    while client.keys():
        time.sleep(ASK_SECONDS)
    equal(other.acquire(), True)
    held = {key: client.get(key) for key in client.keys()}
    try:
        late.release()
    except (redis.exceptions.LockError, redis_lock.NotAcquired):
        pass
    equal({key: client.get(key) for key in client.keys()}, held)
    equal(len(held), 1)
    other.release()


# The checks of limits.


def flask_limiter(strategy, limit):
    """An application, as a function that asks it for a page and tells whether the limit allowed that."""
    app = Flask("limited")
    # With headers it also asks how much is left of the window.
    limiter = Limiter(lambda: "user", app=app, storage_uri=URL, strategy=strategy, headers_enabled=True)

    @app.route("/")
    @limiter.limit(limit)
    def page():
        return "page"

    def allows():
        status = app.test_client().get("/").status_code
        if status not in (200, 429):
            raise AssertionError(f"status {status}")
        return status == 200

    return allows


def counts(strategy):
    answers = two(request, strategy)
    equal(sum(map(sum, answers)), LIMIT)


def renews(strategy):
    """Requests without a pause, until a window has refused one and a later window has allowed one."""
    client, allows = connection(), flask_limiter(strategy, "2 per second")
    began, allowed, refused = now(client), 0, False
    while not refused or allowed <= 2:
        if not allows():
            refused = True
            time.sleep(ASK_SECONDS)
            continue
        allowed += 1
        windows = 1 + (now(client) - began + CLOCK_MS) // WINDOW_MS
        if allowed > 2 * windows:
            raise AssertionError(f"{allowed} requests were allowed in {windows} windows of two")


STRATEGIES = ["fixed-window", "moving-window", "sliding-window-counter"]
CHECKS = {
    "held": [("no-lock", loses_updates)]
    + [(library, excludes, library) for library in LOCKS]
    + [(library, extends, library) for library in EXTENDING]
    + [(f"Flask-Limiter-{strategy}", counts, strategy) for strategy in STRATEGIES],
    "ended": [(library, check, library) for library in LOCKS for check in (killed_holder, late_release)]
    + [(f"Flask-Limiter-{strategy}", renews, strategy) for strategy in STRATEGIES],
}


def main():
    print("version", ", ".join(f"{name} {version(name)}" for name in DISTRIBUTIONS), flush=True)
    passed = True
    for mode, check, *arguments in CHECKS[sys.argv[1]]:
        try:
            connection().flushall()
            check(*arguments)
            print(f"ok {mode} {check.__name__}", flush=True)
        except Exception as error:  # The report of a failed check is its whole purpose.
            traceback.print_exc()
            print(f"not ok {mode} {check.__name__}: {type(error).__name__}: {error}", flush=True)
            passed = False
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
