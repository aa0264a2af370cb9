"""arq, for tests/clients/jobs.py. A job runs at least once: it is in its queue until it is done, and marked as taken for a time.

A worker ends when the connection breaks. Jobs that were added in one millisecond run in any order.
"""

import asyncio
import os
import signal
from importlib.metadata import version

import arq
import redis
from arq.connections import RedisSettings
from arq.jobs import Job
from jobs import Work, play

# A job that takes longer has failed. One that is marked as taken is free again ten seconds after that.
TIMEOUT_SECONDS = 5
TRIES, RESULT_SECONDS, POLL_SECONDS = 100, 600, 0.05


async def perform(context, job):
    running[context["job_id"]] = job
    seconds, result = Arq.work.started(job)
    await asyncio.sleep(seconds)
    return result


async def finished(context):
    """The server has the result."""
    Arq.work.finished(running.pop(context["job_id"]))


# The names of jobs, by their IDs.
running = {}


class Arq:
    VERSION = f"arq {version('arq')}"
    CAPABILITIES = "at-least-once delays repeats=1000 scheduler results restarts"
    # A break between WATCH and EXEC is a WatchError.
    AWAY = (redis.ConnectionError, redis.WatchError, OSError)
    work = None

    def __init__(self, port):
        self.settings = RedisSettings(port=port)
        self.client = redis.Redis(port=port)
        self.loop = asyncio.new_event_loop()
        self.pool = None

    def ask(self, call):
        async def answer():
            self.pool = self.pool or await arq.create_pool(self.settings)
            return await call()

        return self.loop.run_until_complete(answer())

    def add(self, queue, job, delay, priority):
        enqueue = lambda: self.pool.enqueue_job("perform", job, _queue_name=queue, _defer_by=delay or None)  # noqa: E731
        added = self.ask(enqueue)
        if added is None:
            # It takes a connection that breaks for another client with the same ID.
            raise redis.ConnectionError(f"{job} may have been added")
        return added.job_id

    def left(self, queue):
        return self.client.zcard(queue)

    def result(self, queue, job, identifier):
        found = self.ask(lambda: Job(identifier, self.pool, _queue_name=queue).result_info())
        return found.result if found and found.success else None

    def run(self, queue, functions, **more):
        asyncio.set_event_loop(self.loop)
        worker = arq.Worker(
            functions, queue_name=queue, redis_settings=self.settings, job_timeout=TIMEOUT_SECONDS, keep_result=RESULT_SECONDS,
            poll_delay=POLL_SECONDS, max_tries=TRIES, job_completion_wait=TIMEOUT_SECONDS, after_job_end=finished, **more,
        )  # fmt: skip
        worker.run()

    def worker(self, queue, chosen, work):
        Arq.work = work
        self.run(queue, [perform], max_jobs=chosen["concurrency"])

    def scheduler(self, queue, job, seconds):
        Arq.work = Work(work=0)

        async def tick(context):
            return await perform(context, job)

        # Each second, the shortest time. All workers of a queue have to know its jobs: it does them alone.
        self.run(f"{queue}:cron", [], cron_jobs=[arq.cron(tick, second=set(range(60)))])

    def stop(self):
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    play(Arq)
