"""Celery with `acks_late`, for tests/clients/jobs.py.

A job runs at least once: one that is not acknowledged within the visibility timeout is given to another worker. But one
that a worker takes with BRPOP, and has not noted as taken, is lost when the connection breaks. A worker that has jobs may end
when the connection breaks.
"""

import os
import signal
from datetime import timedelta

import celery
import kombu.exceptions
import redis
from celery.worker.request import Request
from jobs import play

VISIBLE_SECONDS, LOOK_SECONDS = 5, 1
PRIORITIES = 10
# Between a priority and the name of a queue.
SEPARATOR = "\x06\x16"

app = celery.Celery("jobs")


class Acknowledged(Request):
    """Tells of a job when the broker has its acknowledgement."""

    def __init__(self, message, **options):
        super().__init__(message, **options)
        acknowledge = message.ack

        def tell(*words, **more):
            acknowledge(*words, **more)
            Celery.work.finished(self.args[0])

        message.ack = tell


@app.task(name="perform", acks_late=True, Request=Acknowledged)
def perform(job):
    result = Celery.work.perform(job)
    # Of the process that does jobs; another acknowledges them.
    Celery.work.finished_count += 1
    return result


class Celery:
    VERSION = f"celery {celery.__version__}"
    CAPABILITIES = "at-least-once given-back lost=1 delays order priorities repeats=500 scheduler results restarts"
    AWAY = (redis.ConnectionError, kombu.exceptions.OperationalError)
    work = None

    def __init__(self, port):
        url = f"redis://127.0.0.1:{port}/0"
        self.client = redis.Redis(port=port)
        app.conf.update(
            broker_url=url,
            result_backend=url,
            broker_transport_options={
                "visibility_timeout": VISIBLE_SECONDS,
                "unacked_restore_interval": LOOK_SECONDS,
                "unacked_restore_throttle": 1,
                # A worker that ends in the middle of it leaves its lock.
                "unacked_mutex_expire": LOOK_SECONDS,
                "priority_steps": list(range(PRIORITIES)),
                "sep": SEPARATOR,
                "queue_order_strategy": "priority",
            },
            broker_connection_retry_on_startup=True,
            task_publish_retry=False,
            result_backend_always_retry=True,
            task_create_missing_queues=True,
            worker_prefetch_multiplier=1,
            worker_hijack_root_logger=False,
            worker_redirect_stdouts=False,
        )

    def add(self, queue, job, delay, priority):
        return perform.apply_async((job,), queue=queue, countdown=delay or None, priority=priority).id

    def left(self, queue):
        names = [queue] + [f"{queue}{SEPARATOR}{priority}" for priority in range(1, PRIORITIES)]
        return sum(self.client.llen(name) for name in names) + self.client.hlen("unacked")

    def result(self, queue, job, identifier):
        return app.AsyncResult(identifier).result

    def worker(self, queue, chosen, work):
        Celery.work = work
        name = f"worker{os.getpid()}@127.0.0.1"
        worker = app.Worker(queues=[queue], concurrency=chosen["concurrency"], hostname=name, loglevel="WARNING")
        worker.start()

    def scheduler(self, queue, job, seconds):
        entry = {"task": "perform", "schedule": timedelta(seconds=seconds), "args": (job,), "options": {"queue": queue}}
        app.conf.beat_schedule = {job: entry}
        app.conf.beat_max_loop_interval = seconds
        app.Beat(scheduler_cls="celery.beat:Scheduler", quiet=True, loglevel="WARNING").run()

    def stop(self):
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    play(Celery)
