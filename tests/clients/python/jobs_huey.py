"""Huey, for tests/clients/jobs.py. A job runs at most once: one that a killed worker has taken is lost.

The queue of the backlog has priorities, and is a sorted set; the others are lists. A job that is repeated runs at most once a
minute, and is left out.
"""

import os
import signal

import huey
import redis
from huey.signals import SIGNAL_COMPLETE
from jobs import play

# A higher number goes first.
HIGHEST = 10


class Huey:
    VERSION = f"huey {huey.__version__}"
    # As many as the threads of a worker.
    CAPABILITIES = "lost=4 delays doubles priorities results"
    AWAY = redis.ConnectionError

    def __init__(self, port):
        self.client = redis.Redis(port=port)
        self.queues = {}

    def open(self, name):
        """A queue, and its task."""
        if name not in self.queues:
            kind = huey.PriorityRedisHuey if name == "ranks" else huey.RedisHuey
            # Of each, so that results stay.
            queue = kind(name, connection_pool=self.client.connection_pool)
            self.queues[name] = queue, queue.task(name="perform")(lambda job: self.work.perform(job))
        return self.queues[name]

    def add(self, name, job, delay, priority):
        queue, perform = self.open(name)
        more = {"priority": HIGHEST - priority} if priority else {}
        return perform.schedule((job,), delay=delay).id if delay else queue.enqueue(perform.s(job, **more)).id

    def left(self, name):
        queue, _ = self.open(name)
        return queue.pending_count() + queue.scheduled_count()

    def result(self, name, job, identifier):
        queue, _ = self.open(name)
        return queue.result(identifier, preserve=True)

    def worker(self, name, chosen, work):
        self.work = work
        queue, _ = self.open(name)

        @queue.signal(SIGNAL_COMPLETE)
        def complete(_, task):
            work.finished(task.args[0])

        consumer = queue.create_consumer(workers=chosen["concurrency"], periodic=False, max_delay=0.5)
        consumer.run()

    def stop(self):
        os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    play(Huey)
