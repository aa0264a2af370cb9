"""What well-known Python libraries do with a server, each as its documentation begins. The first argument is the name of one.

A library that works prints nothing and ends with 0.
"""

import asyncio
import os
import sys
import threading
import time

PORT = int(os.environ["LIBRARIES_PORT"])
URL = f"redis://127.0.0.1:{PORT}/0"
PROBES = {}


def probe(function):
    PROBES[function.__name__] = function
    return function


def connection(**options):
    import redis

    return redis.Redis(port=PORT, **options)


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r} instead of {expected!r}")


def use_cache(cache):
    """What the caches of Django promise."""
    cache.set("key", {"a": [1, 2]}, 30)
    equal(cache.get("key"), {"a": [1, 2]})
    equal(cache.add("key", 1), False)
    cache.set_many({"a": 1, "b": 2}, timeout=30)
    equal(cache.get_many(["a", "b", "c"]), {"a": 1, "b": 2})
    equal(cache.incr("a"), 2)
    equal(cache.touch("a", 60), True)
    equal(cache.delete("a"), True)
    equal(cache.get("a", "gone"), "gone")
    cache.clear()
    equal(cache.get("b"), None)


def django(backend, **options):
    from django.conf import settings

    settings.configure(CACHES={"default": {"BACKEND": backend, "LOCATION": URL, **options}}, USE_TZ=True)
    from django.core.cache import cache

    return cache


@probe
def redis_py():
    client = connection(decode_responses=True)
    client.set("key", "value", ex=30)
    equal(client.get("key"), "value")
    with client.pipeline() as pipe:
        equal(pipe.incr("n").expire("n", 30).execute(), [1, True])
    listener = client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("channel")
    listener.get_message(timeout=5)
    client.publish("channel", "hello")
    messages = (listener.get_message(timeout=5) for _ in range(5))
    equal(next(message for message in messages if message)["data"], "hello")
    listener.close()


@probe
def redis_py_lock():
    with connection().lock("lock", timeout=10, blocking_timeout=5):
        pass


@probe
def django_cache():
    use_cache(django("django.core.cache.backends.redis.RedisCache"))


@probe
def django_redis():
    cache = django("django_redis.cache.RedisCache")
    use_cache(cache)
    cache.set("page:1", 1)
    equal(cache.delete_pattern("page:*"), 1)


@probe
def django_redis_lock():
    with django("django_redis.cache.RedisCache").lock("lock", timeout=10):
        pass


@probe
def flask_caching():
    from flask import Flask
    from flask_caching import Cache

    app = Flask("probe")
    cache = Cache(app, config={"CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": URL})
    calls = []

    @app.route("/")
    @cache.cached(timeout=30)
    def page():
        calls.append(1)
        return "page"

    @cache.memoize(30)
    def double(number):
        calls.append(2)
        return 2 * number

    client = app.test_client()
    equal([client.get("/").text for _ in range(2)], ["page"] * 2)
    with app.app_context():
        equal([double(4), double(4)], [8, 8])
        cache.delete_memoized(double)
        equal(double(4), 8)
    equal(calls, [1, 2, 2])


@probe
def flask_session():
    from flask import Flask, session
    from flask_session import Session

    app = Flask("probe")
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=connection())
    Session(app)

    @app.route("/")
    def count():
        session["count"] = session.get("count", 0) + 1
        return str(session["count"])

    client = app.test_client()
    equal([client.get("/").text for _ in range(3)], ["1", "2", "3"])


@probe
def flask_limiter():
    from flask import Flask
    from flask_limiter import Limiter
    from flask_limiter.util import get_remote_address

    app = Flask("probe")
    limiter = Limiter(get_remote_address, app=app, storage_uri=URL)

    @app.route("/")
    @limiter.limit("2 per minute")
    def page():
        return "page"

    client = app.test_client()
    equal([client.get("/").status_code for _ in range(3)], [200, 200, 429])


@probe
def aiocache():
    async def use():
        from aiocache import RedisCache
        from aiocache.serializers import PickleSerializer

        cache = RedisCache(endpoint="127.0.0.1", port=PORT, serializer=PickleSerializer())
        await cache.set("key", {"a": 1}, ttl=30)
        equal(await cache.get("key"), {"a": 1})
        await cache.multi_set([("a", 1), ("b", 2)])
        equal(await cache.multi_get(["a", "b", "c"]), [1, 2, None])
        equal(await cache.delete("a"), 1)

    asyncio.run(use())


@probe
def cachelib():
    from cachelib import RedisCache

    cache = RedisCache(host="127.0.0.1", port=PORT)
    cache.set("key", {"a": 1}, timeout=30)
    equal(cache.get("key"), {"a": 1})
    equal(cache.add("key", 2), False)
    equal(cache.inc("n"), 1)
    equal(cache.get_many("key", "none"), [{"a": 1}, None])
    equal(cache.delete("key"), True)


@probe
def dogpile_cache():
    from dogpile.cache import make_region

    region = make_region().configure("dogpile.cache.redis", arguments={"url": URL, "redis_expiration_time": 60})
    calls = []

    @region.cache_on_arguments()
    def double(number):
        calls.append(number)
        return 2 * number

    equal([double(4), double(4)], [8, 8])
    equal(calls, [4])


@probe
def dogpile_cache_lock():
    from dogpile.cache import make_region

    arguments = {"url": URL, "distributed_lock": True, "thread_local_lock": False}
    region = make_region().configure("dogpile.cache.redis", arguments=arguments)
    equal(region.get_or_create("key", lambda: 5), 5)


@probe
def fastapi_cache():
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    from fastapi_cache import FastAPICache
    from fastapi_cache.backends.redis import RedisBackend
    from fastapi_cache.decorator import cache

    import redis.asyncio

    calls = []
    app = FastAPI()

    @app.get("/")
    @cache(expire=30)
    async def page():
        calls.append(1)
        return {"page": 1}

    FastAPICache.init(RedisBackend(redis.asyncio.Redis(port=PORT)), prefix="cache")
    with TestClient(app) as client:
        equal([client.get("/").json() for _ in range(2)], [{"page": 1}] * 2)
    equal(calls, [1])


@probe
def requests_cache():
    import http.server

    import requests_cache as library

    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    session = library.CachedSession("cache", backend=library.RedisCache(port=PORT))
    url = f"http://127.0.0.1:{server.server_port}/"
    equal([session.get(url).from_cache for _ in range(2)], [False, True])
    server.shutdown()


@probe
def celery_results():
    from celery import Celery

    app = Celery("probe", backend=URL)
    app.conf.result_expires = 60
    app.backend.store_result("task", {"a": 1}, "SUCCESS")
    equal(app.AsyncResult("task").get(timeout=5), {"a": 1})


@probe
def celery_broker():
    from celery import Celery
    from celery.contrib.testing.worker import start_worker

    app = Celery("probe", broker=URL, backend="cache+memory://")
    app.conf.broker_connection_max_retries = 1
    done = threading.Event()

    @app.task(name="probe")
    def task():
        done.set()

    with start_worker(app, perform_ping_check=False, pool="solo"):
        task.delay()
        equal(done.wait(15), True)


@probe
def rq():
    from rq import Queue, SimpleWorker

    client = connection()
    job = Queue(connection=client).enqueue(max, 1, 2)
    SimpleWorker([Queue(connection=client)], connection=client).work(burst=True)
    job.refresh()
    equal(job.return_value(), 2)


@probe
def huey():
    from huey import RedisHuey

    queue = RedisHuey(url=URL)

    @queue.task()
    def double(number):
        return 2 * number

    result = double(4)
    queue.execute(queue.dequeue())
    equal(result.get(blocking=True, timeout=5), 8)


@probe
def dramatiq():
    import dramatiq as library
    from dramatiq.brokers.redis import RedisBroker

    broker = RedisBroker(url=URL)
    library.set_broker(broker)
    done = threading.Event()

    @library.actor
    def task():
        done.set()

    task.send()
    worker = library.Worker(broker, worker_timeout=100)
    worker.start()
    is_done = done.wait(10)
    worker.stop()
    equal(is_done, True)


@probe
def arq():
    async def use():
        import arq as library
        from arq.connections import RedisSettings

        async def double(_, number):
            return 2 * number

        settings = RedisSettings(port=PORT)
        pool = await library.create_pool(settings)
        job = await pool.enqueue_job("double", 4)
        worker = library.Worker([library.func(double, name="double")], redis_settings=settings, burst=True, handle_signals=False)
        await worker.async_run()
        equal(await job.result(timeout=10), 8)
        await worker.close()

    asyncio.run(use())


@probe
def python_redis_lock():
    import redis_lock

    with redis_lock.Lock(connection(), "lock", expire=10):
        pass


@probe
def redlock_py():
    from redlock import Redlock

    manager = Redlock([{"host": "127.0.0.1", "port": PORT, "db": 0}])
    lock = manager.lock("lock", 10_000)
    equal(bool(lock), True)
    manager.unlock(lock)
    # Unlocking reports no error of the server: whether the lock is gone shows.
    equal(connection().exists("lock"), 0)


@probe
def channels_redis():
    channel_layer("channels_redis.core.RedisChannelLayer")


@probe
def channels_redis_pubsub():
    channel_layer("channels_redis.pubsub.RedisPubSubChannelLayer")


def channel_layer(path):
    async def use():
        from importlib import import_module

        module, name = path.rsplit(".", 1)
        layer = getattr(import_module(module), name)(hosts=[URL])
        own = await layer.new_channel()
        await layer.group_add("group", own)
        await layer.group_send("group", {"type": "hello"})
        equal((await asyncio.wait_for(layer.receive(own), 10))["type"], "hello")
        await layer.flush()

    asyncio.run(use())


@probe
def python_socketio():
    import socketio

    sender = socketio.RedisManager(URL, write_only=True)
    listener = connection().pubsub(ignore_subscribe_messages=True)
    listener.subscribe("socketio")
    listener.get_message(timeout=5)
    sender.emit("event", {"a": 1}, room="room")
    messages = (listener.get_message(timeout=5) for _ in range(5))
    equal(any(messages), True)


@probe
def redis_py_streams():
    from queue import Queue

    producer, group, heard = connection(), "group", Queue()
    producer.xgroup_create("stream", group, mkstream=True)

    def consume(name):
        client = connection(decode_responses=True)
        while True:
            for _, entries in client.xreadgroup(group, name, {"stream": ">"}, count=1, block=10_000):
                for identifier, fields in entries:
                    heard.put(fields["n"])
                    # What one does not acknowledge goes to the other, below.
                    if fields["n"] != "3":
                        client.xack("stream", group, identifier)
                    else:
                        return

    for name in ("one", "other"):
        threading.Thread(target=consume, args=(name,), daemon=True).start()
    sent = [producer.xadd("stream", {"n": n}) for n in range(5)]
    equal(sorted(heard.get(timeout=10) for _ in sent), list("01234"))
    _, claimed, *_ = producer.xautoclaim("stream", group, "third", 0, "0-0")
    equal([(sent[3], {b"n": b"3"})], [entry for entry in claimed if entry[0] == sent[3]])
    producer.xack("stream", group, *sent)
    equal(producer.xpending("stream", group)["pending"], 0)


@probe
def walrus():
    from walrus import Database

    producer, consumer = Database(port=PORT), Database(port=PORT)
    for name in ("a", "b"):
        producer.Stream(name).add({"first": name})
    group = consumer.consumer_group("group", ["a", "b"])
    group.create()
    group.set_id("$")
    threading.Timer(0.1, lambda: producer.Stream("b").add({"n": "1"})).start()
    ((key, ((identifier, fields),)),) = group.read(block=10_000)
    equal((key, fields), (b"b", {b"n": b"1"}))
    equal(len(group.b.pending()), 1)
    equal(group.b.ack(identifier), 1)
    equal(group.b.pending(), [])
    equal(len(consumer.Stream("b").read()), 2)


@probe
def walrus_objects():
    from walrus import Database

    database = Database(port=PORT)
    found = database.Hash("hash")
    found.update(name="Bob")
    equal(found["name"], b"Bob")
    array = database.Array("array")
    array.extend(["a", "b"])
    equal(array.pop(0), b"a")
    with database.lock("lock", ttl=5000):
        equal(database.lock("lock").acquire(block=False), False)
    limit = database.rate_limit_lua("limit", limit=1, per=60)
    equal([limit.limit("key"), limit.limit("key")], [False, True])


@probe
def redis_om():
    import redis_om

    class Customer(redis_om.HashModel, index=True):
        name: str

        class Meta:
            database = redis_om.get_redis_connection(port=PORT)

    andrew = Customer(name="Andrew").save()
    andrew.expire(60)
    equal(Customer.get(andrew.pk), andrew)
    Customer.delete(andrew.pk)


@probe
def faststream():
    async def use():
        from faststream.redis import RedisBroker, StreamSub

        consumer, producer, heard = RedisBroker(URL), RedisBroker(URL), asyncio.Queue()

        @consumer.subscriber(stream=StreamSub("stream", group="group", consumer="one"))
        async def handle(message: str):
            await heard.put(message)

        await consumer.start()
        await producer.connect()
        await producer.publish("hello", stream="stream")
        equal(await asyncio.wait_for(heard.get(), 10), "hello")
        client = connection()
        while client.xpending("stream", "group")["pending"]:
            await asyncio.sleep(0.01)
        await producer.stop()
        await consumer.stop()

    asyncio.run(use())


@probe
def taskiq():
    async def use():
        from taskiq.api import run_receiver_task
        from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

        broker = RedisStreamBroker(URL).with_result_backend(RedisAsyncResultBackend(URL))

        @broker.task(task_name="double")
        async def double(number: int) -> int:
            return 2 * number

        await broker.startup()
        worker = asyncio.create_task(run_receiver_task(broker))
        task = await double.kiq(4)
        result = await task.wait_result(timeout=10)
        equal(result.return_value, 8)
        worker.cancel()

    asyncio.run(use())


if __name__ == "__main__":
    PROBES[sys.argv[1]]()
    # Threads of a library that waits for ever end with the process.
    sys.stdout.flush()
    os._exit(0)
