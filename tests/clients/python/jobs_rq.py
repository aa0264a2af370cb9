"""RQ, for tests/clients/jobs.py. A job with retries runs at least once: again a minute or more after its worker was killed."""

import os
import signal
from datetime import timedelta
from importlib.metadata import version

import redis
import rq
from jobs import play
from rq.cron import CronScheduler

RETRIES = 20


def perform(job):
    return Rq.work.perform(job)


class Worker(rq.Worker):
    """Tells of a job when its result is stored, and counts the jobs in the process that starts others."""

    def handle_job_success(self, job, *words, **more):
        super().handle_job_success(job, *words, **more)
        Rq.work.finished(job.args[0])

    def execute_job(self, job, queue):
        super().execute_job(job, queue)
        Rq.work.finished_count += 1


class Rq:
    VERSION = f"rq {version('rq')}"
    CAPABILITIES = "at-least-once delays order priorities repeats=1000 scheduler results restarts"
    AWAY = redis.ConnectionError
    work = None

    def __init__(self, port):
        self.client = redis.Redis(port=port)

    def queue(self, name):
        return rq.Queue(name, connection=self.client)

    def add(self, name, job, delay, priority):
        queue = self.queue(f"{name}{priority}" if priority else name)
        retry = rq.Retry(max=RETRIES)
        if delay:
            return queue.enqueue_in(timedelta(seconds=delay), perform, job, retry=retry).id
        return queue.enqueue(perform, job, retry=retry).id

    def left(self, name):
        queue = self.queue(name)
        registries = [queue.started_job_registry, queue.scheduled_job_registry, queue.failed_job_registry]
        waiting = len(queue) + self.client.llen(queue.intermediate_queue_key)
        return waiting + sum(registry.get_job_count(cleanup=False) for registry in registries)

    def result(self, name, job, identifier):
        return rq.job.Job.fetch(identifier, connection=self.client).return_value()

    def worker(self, name, chosen, work):
        Rq.work = work
        names = [f"{name}{priority + 1}" for priority in range(chosen.get("priorities", 0))] or [name]
        worker = Worker([self.queue(name) for name in names], connection=self.client, maintenance_interval=5)
        worker.work(with_scheduler=True, logging_level="WARNING")

    def scheduler(self, name, job, seconds):
        cron = CronScheduler(connection=self.client, logging_level="WARNING")
        cron.register(perform, name, args=(job,), interval=int(seconds))
        cron.start()

    def stop(self):
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    # It takes no function of a module that is the program.
    import jobs_rq

    play(jobs_rq.Rq)
