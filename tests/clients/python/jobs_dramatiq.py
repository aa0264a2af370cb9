"""Dramatiq, for tests/clients/jobs.py.

A job runs at least once: what a worker has not acknowledged goes back to its queue when the worker has said nothing for a
time, or when it ends.
"""

import threading
from importlib.metadata import version

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import ResultMissing, Results
from dramatiq.results.backends import RedisBackend
from jobs import play

# More than a worker waits when its connection breaks.
HEARTBEAT_MS = 5000
# All commands of a million look for workers that say nothing.
ALWAYS = 1_000_000
RESULT_MS = 600_000


class Acknowledged(dramatiq.Middleware):
    """Tells of a job when the broker has its acknowledgement."""

    def after_ack(self, broker, message):
        # A job with a delay is acknowledged, and added again, when it is due.
        if not message.queue_name.endswith(".DQ"):
            Dramatiq.work.finished(message.args[0])


class Dramatiq:
    VERSION = f"dramatiq {version('dramatiq')}"
    CAPABILITIES = "at-least-once given-back kept delays doubles order results forgets"
    AWAY = (redis.ConnectionError, dramatiq.errors.BrokerError)
    work = None

    def __init__(self, port):
        url = f"redis://127.0.0.1:{port}/0"
        self.client = redis.Redis(port=port)
        self.broker = RedisBroker(url=url, heartbeat_timeout=HEARTBEAT_MS, maintenance_chance=ALWAYS)
        self.backend = RedisBackend(url=url)
        self.broker.add_middleware(Results(backend=self.backend, store_results=True, result_ttl=RESULT_MS))
        self.broker.add_middleware(Acknowledged())
        dramatiq.set_broker(self.broker)
        self.actors = {}
        self.stopped = threading.Event()

    def actor(self, name):
        if name not in self.actors:
            self.actors[name] = dramatiq.actor(lambda job: self.work.perform(job), actor_name=name, queue_name=name)
        return self.actors[name]

    def add(self, name, job, delay, priority):
        return self.actor(name).send_with_options(args=(job,), delay=delay * 1000 if delay else None).message_id

    def left(self, name):
        kept = sum(self.client.hlen(f"dramatiq:{queue}.msgs") for queue in (name, f"{name}.DQ"))
        return kept + self.client.zcard(f"dramatiq:{name}.XQ")

    def result(self, name, job, identifier):
        message = self.actor(name).message(job).copy(message_id=identifier)
        try:
            return message.get_result(backend=self.backend)
        except ResultMissing:
            return None

    def worker(self, name, chosen, work):
        Dramatiq.work = self.work = work
        self.actor(name)
        self.running = dramatiq.Worker(self.broker, queues={name}, worker_threads=chosen["concurrency"], worker_timeout=100)
        self.running.start()
        self.stopped.wait()
        self.running.stop()

    def stop(self):
        self.stopped.set()


if __name__ == "__main__":
    play(Dramatiq)
