"""That huey and Dramatiq run a job twice for want of a reply is their own: a proxy loses one reply, and no server is killed.

jobs.py allows such frameworks what is found here (`doubles`). One that has changed must lose that, and docs/libraries.md with it.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from importlib.metadata import version

PORT = int(os.environ["CLIENTS_PORT"])
PATIENCE_SECONDS, PAUSE_SECONDS, DELAY_SECONDS = 60, 0.05, 2
# A second run would have begun by then: redis-py sends a request again after a second at most.
QUIET_SECONDS = 4
HEARTBEAT_MS = 1000


class Proxy:
    """Passes on what a client sends; of the request that `chosen` finds the reply is lost, and the connection breaks."""

    def __init__(self, chosen):
        self.chosen, self.lost = chosen, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", PORT))
            breaks = threading.Event()
            threading.Thread(target=self.forth, args=(client, server, breaks), daemon=True).start()
            threading.Thread(target=self.back, args=(client, server, breaks), daemon=True).start()

    def forth(self, client, server, breaks):
        try:
            while data := client.recv(1 << 16):
                if self.chosen(data):
                    breaks.set()
                server.sendall(data)
        except OSError:
            pass
        server.close()

    def back(self, client, server, breaks):
        try:
            while data := server.recv(1 << 16):
                if breaks.is_set():
                    self.lost += 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)
        except OSError:
            pass


def numbered(is_addition, number):
    """Finds the addition with this number."""
    seen = []

    def chosen(data):
        if not is_addition(data):
            return False
        seen.append(data)
        return len(seen) == number

    return chosen


def run_huey(port, delay, runs, _):
    import huey
    import redis

    queue = huey.RedisHuey("jobs", connection_pool=redis.Redis(port=port).connection_pool)
    perform = queue.task(name="perform")(runs.append)
    if delay:
        perform.schedule(("job",), delay=delay)
    else:
        perform("job")
    consumer = queue.create_consumer(workers=1, periodic=False, max_delay=0.1)
    consumer.start()


def run_dramatiq(port, delay, runs, has_run):
    """A worker that ends when it has done the job, and another that takes over what it has left."""
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    for number in range(2):
        url = f"redis://127.0.0.1:{port}/0"
        broker = RedisBroker(url=url, heartbeat_timeout=HEARTBEAT_MS, maintenance_chance=1_000_000)
        perform = dramatiq.actor(runs.append, actor_name="perform", broker=broker)
        if number == 0:
            perform.send_with_options(args=("job",), delay=delay * 1000 or None)
        worker = dramatiq.Worker(broker, worker_threads=1, worker_timeout=100)
        worker.start()
        if number == 0:
            has_run()
            worker.stop()
            # The others take what is left when it has said nothing for that time.
            time.sleep(2 * HEARTBEAT_MS / 1000)


# Which addition loses its reply, and how often the job runs. huey adds a job with a delay to its list at once, and when it is due.
def of_huey(data):
    return b"LPUSH" in data


def of_dramatiq(data):
    # Not to the queue of those with a delay.
    return b"enqueue" in data and b"default" in data and b"default.DQ" not in data


CASES = {
    "huey": (run_huey, of_huey, 0, 0, 1),
    "huey_reply_lost": (run_huey, of_huey, 0, 1, 2),
    "huey_delay": (run_huey, of_huey, DELAY_SECONDS, 0, 1),
    "huey_delay_reply_lost": (run_huey, of_huey, DELAY_SECONDS, 2, 2),
    "dramatiq_delay": (run_dramatiq, of_dramatiq, DELAY_SECONDS, 0, 1),
    "dramatiq_delay_reply_lost": (run_dramatiq, of_dramatiq, DELAY_SECONDS, 1, 2),
}


def case(name):
    """Prints how often the job has run, and how many replies were lost."""
    run, is_addition, delay, number, expected = CASES[name]
    runs, proxy = [], Proxy(numbered(is_addition, number))
    end = time.monotonic() + PATIENCE_SECONDS

    def until(count):
        while len(runs) < count and time.monotonic() < end:
            time.sleep(PAUSE_SECONDS)

    run(proxy.port, delay, runs, lambda: until(1))
    until(expected)
    if expected == 1:
        time.sleep(QUIET_SECONDS)
    print(len(runs), proxy.lost, flush=True)
    os._exit(0)


def main():
    if len(sys.argv) > 1:
        return case(sys.argv[1])
    print("version", *(f"{name} {version(name)}" for name in ("huey", "dramatiq", "redis")))
    passed = True
    for name, (*_, number, expected) in CASES.items():
        with socket.create_connection(("127.0.0.1", PORT)) as connection:
            connection.sendall(b"FLUSHALL\r\n")
            connection.recv(100)
        done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=False)
        wanted = f"{expected} {1 if number else 0}"
        is_right = done.stdout.strip() == wanted
        passed = passed and is_right
        told = f": {done.stdout.strip()!r} instead of {wanted!r}"
        print("ok" if is_right else "not ok", "reply", name + ("" if is_right else told), flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
