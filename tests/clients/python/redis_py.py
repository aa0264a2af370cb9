"""redis-py against the server: the checks of tests/clients/run, in six modes.

`default` is what `redis.Redis()` does with no option given; `resp2` and `resp3` choose the protocol; `asyncio` and
`pool_of_one` are the two other ways in which applications hold this client, `cache` keeps copies on the client's side.
"""

import asyncio
import os
import sys
import time
import traceback

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.cache import CacheConfig
from redis.retry import Retry

PORT = int(os.environ["CLIENTS_PORT"])
LOCKED_PORT = int(os.environ["CLIENTS_LOCKED_PORT"])
PASSWORD = os.environ["CLIENTS_PASSWORD"]
MEGABYTE = bytes(range(256)) * 4096
DEEPEST = int(os.environ["CLIENTS_DEEPEST"])
# Pipelines: how many requests, and the bytes of the value that each is answered with.
DEPTHS = [(1, 1), (DEEPEST, 1), (DEEPEST // 10, 1000), (DEEPEST // 1000, 100_000), (DEEPEST // 10_000, 1_000_000)]

MODES = {
    "default": {},
    "resp2": {"protocol": 2},
    "resp3": {"protocol": 3},
    "pool_of_one": {"single_connection_client": True},
}


def equal(actual, expected):
    """Fails with both values; `bool` is not taken for `int`, because the protocol's types are the point here."""
    if actual != expected or isinstance(actual, bool) != isinstance(expected, bool):
        raise AssertionError(f"got {actual!r}, expected {expected!r}")


def raises(kind, call):
    """Returns the exception of exactly class `kind` that `call` raises."""
    try:
        result = call()
    except redis.RedisError as error:
        if type(error) is not kind:
            raise AssertionError(f"raised {type(error).__name__}, expected {kind.__name__}: {error}") from error
        return error
    raise AssertionError(f"returned {result!r}, expected {kind.__name__}")


class Checks:
    """One method per check. `self.client` is connected to an empty server with the mode's options."""

    def __init__(self, options):
        self.options = options
        self.client = redis.Redis(port=PORT, **options)
        self.client.flushall()

    def connect(self):
        equal(self.client.ping(), True)
        equal(self.client.echo("hello"), b"hello")

    def text(self):
        equal(self.client.set("text", "caf\u00e9 \u2713"), True)
        equal(self.client.get("text").decode(), "caf\u00e9 \u2713")
        equal(self.client.get("absent"), None)
        decoding = redis.Redis(port=PORT, decode_responses=True, **self.options)
        equal(decoding.get("text"), "caf\u00e9 \u2713")
        decoding.close()

    def binary(self):
        key, value = b"binary\r\n\x00\xff", bytes(range(256)) + b"\r\n$-1\r\n"
        equal(self.client.set(key, value), True)
        equal(self.client.get(key), value)

    def empty(self):
        equal(self.client.set("", ""), True)
        equal(self.client.get(""), b"")
        equal(self.client.strlen(""), 0)

    def megabyte(self):
        equal(self.client.set("megabyte", MEGABYTE), True)
        equal(self.client.get("megabyte"), MEGABYTE)

    def set_options(self):
        c = self.client
        equal(c.set("option", "1", nx=True), True)
        equal(c.set("option", "2", nx=True), None)
        equal(c.set("option", "2", xx=True), True)
        equal(c.set("option-absent", "2", xx=True), None)
        equal(c.set("option", "3", get=True), b"2")
        equal(c.set("option", "4", ex=100), True)
        equal(90 < c.ttl("option") <= 100, True)
        equal(c.set("option", "5", px=200_000, get=True), b"4")
        equal(190_000 < c.pttl("option") <= 200_000, True)
        equal(c.set("option", "6", keepttl=True), True)
        equal(190_000 < c.pttl("option") <= 200_000, True)
        equal(c.set("option", "7"), True)
        equal(c.ttl("option"), -1)

    def expire(self):
        c = self.client
        c.set("expire", "x")
        equal(c.expire("expire", 50), True)
        equal(40 < c.ttl("expire") <= 50, True)
        equal(c.expire("expire", 10, gt=True), False)
        equal(c.persist("expire"), True)
        equal(c.persist("expire"), False)
        equal(c.ttl("expire"), -1)
        equal(c.ttl("absent"), -2)
        equal(c.expire("absent", 10), False)
        equal(c.expireat("expire", 4_102_444_800), True)
        equal(c.expiretime("expire"), 4_102_444_800)

    def increment(self):
        c = self.client
        equal(c.incr("counter"), 1)
        equal(c.incrby("counter", 41), 42)
        equal(c.decr("counter", 2), 40)
        equal(c.get("counter"), b"40")
        equal(c.incrbyfloat("counter", 0.5), 40.5)
        equal(c.get("counter"), b"40.5")

    def multi_key(self):
        equal(self.client.mset({"m1": "a", "m2": "b", "m3": ""}), True)
        equal(self.client.mget("m1", "absent", "m2", "m3"), [b"a", None, b"b", b""])
        equal(self.client.msetnx({"m4": "x", "m1": "y"}), False)
        equal(self.client.exists("m4"), 0)

    def ranges(self):
        c = self.client
        equal(c.append("range", "Hello"), 5)
        equal(c.append("range", " World"), 11)
        equal(c.getrange("range", -5, -1), b"World")
        equal(c.setrange("range", 6, "Redis"), 11)
        equal(c.get("range"), b"Hello Redis")
        equal(c.setrange("range-new", 3, "x"), 4)
        equal(c.get("range-new"), b"\0\0\0x")

    def bits(self):
        c = self.client
        equal(c.setbit("bits", 7, 1), 0)
        equal(c.setbit("bits", 100, 1), 0)
        equal(c.getbit("bits", 100), 1)
        equal(c.bitcount("bits"), 2)
        equal(c.bitcount("bits", 0, 0), 1)
        equal(c.bitpos("bits", 1), 7)

    def collections(self):
        c = self.client
        equal(c.hset("hash", mapping={"f": "v", "n": 1}), 2)
        equal(c.hincrby("hash", "n", 4), 5)
        equal(c.hgetall("hash"), {b"f": b"v", b"n": b"5"})
        equal(c.sadd("set", "a", "b"), 2)
        equal(set(c.smembers("set")), {b"a", b"b"})
        equal(c.zadd("sorted", {"a": 1, "b": 2.5}), 2)
        equal([tuple(pair) for pair in c.zrange("sorted", 0, -1, withscores=True)], [(b"a", 1.0), (b"b", 2.5)])
        equal(c.rpush("list", 1, 2, 3), 3)
        equal(c.lmove("list", "other", "LEFT", "RIGHT"), b"1")
        equal(c.lrange("list", 0, -1), [b"2", b"3"])
        equal(c.geoadd("places", (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")), 2)
        equal(round(c.geodist("places", "Palermo", "Catania", "km")), 166)
        equal(c.pfadd("visits", "x", "y"), 1)
        equal(c.pfcount("visits"), 2)
        equal(tuple(c.blpop("list", timeout=1)), (b"list", b"2"))
        equal(tuple(c.bzpopmin("sorted", timeout=1)), (b"sorted", b"a", 1.0))

    def delete(self):
        c = self.client
        c.mset({"d1": 1, "d2": 2, "d3": 3})
        equal(c.exists("d1", "d2", "d3", "d1", "absent"), 4)
        equal(c.delete("d1", "absent"), 1)
        equal(c.unlink("d2", "d3"), 2)
        equal(c.exists("d1", "d2", "d3"), 0)

    def scan(self):
        expected = {f"scan:{i}".encode() for i in range(1000)}
        self.client.mset({key: "x" for key in expected})
        equal(set(self.client.scan_iter("scan:*")), expected)
        equal(set(self.client.scan_iter("scan:*", count=500, _type="string")), expected)

    def pipeline(self):
        pipe = self.client.pipeline(transaction=False)
        for i in range(500):
            pipe.set(f"pipe:{i}", i).get(f"pipe:{i}")
        equal(pipe.execute(), [reply for i in range(500) for reply in (True, str(i).encode())])
        pipe = self.client.pipeline(transaction=False)
        pipe.set("pipe:text", "x").incr("pipe:text").get("pipe:text")
        ok, error, value = pipe.execute(raise_on_error=False)
        equal((ok, type(error), value), (True, redis.ResponseError, b"x"))

    def deep_pipeline(self):
        """This client writes all requests before it reads the first reply."""
        for count, size in DEPTHS:
            value = b"x" * size
            pipe = self.client.pipeline(transaction=False)
            pipe.set("deep", value)
            for _ in range(count):
                pipe.get("deep")
            equal(pipe.execute() == [True] + [value] * count, True)

    def select(self):
        self.client.set("where", "zero")
        other = redis.Redis(port=PORT, db=3, **self.options)
        equal(other.get("where"), None)
        equal(other.set("where", "three"), True)
        equal(self.client.get("where"), b"zero")
        equal(other.dbsize(), 1)
        other.flushdb()
        other.close()
        raises(redis.ResponseError, lambda: redis.Redis(port=PORT, db=10_000, **self.options).ping())

    def client_info(self):
        with redis.Redis(port=PORT, client_name="checks", **self.options) as named:
            equal(named.client_getname() in ("checks", b"checks"), True)
            me = named.client_info()
            equal((me["name"], me["id"]), ("checks", named.client_id()))
            listed = [entry for entry in named.client_list() if entry["name"] == "checks"]
            equal([entry["id"] for entry in listed], [str(me["id"])])
            equal(listed[0]["addr"].startswith("127.0.0.1:"), True)

    def info(self):
        self.client.set("info", "x")
        info = self.client.info()
        equal(info["redis_version"].count("."), 2)
        equal(info["role"], "master")
        equal(info["loading"], 0)
        equal(info["tcp_port"], PORT)
        equal(info["db0"]["keys"] >= 1, True)
        equal(isinstance(info["used_memory"], int), True)
        equal("redis_version" in self.client.info("server"), True)

    def config(self):
        equal(self.client.config_get("maxmemory*")["maxmemory"].isdigit(), True)
        equal(self.client.config_get("databases"), {"databases": "16"})
        equal(self.client.config_get("no-such-setting"), {})

    def command(self):
        table = self.client.command()
        equal((table["get"]["arity"], table["get"]["first_key_pos"], table["get"]["last_key_pos"]), (2, 1, 1))
        equal("readonly" in table["get"]["flags"], True)
        equal(table["mset"]["step_count"], 2)
        equal(self.client.command_count() >= 60, True)
        keys = self.client.command_getkeys("MSET", "a", "1", "b", "2")
        equal([key if isinstance(key, str) else key.decode() for key in keys], ["a", "b"])

    def not_an_integer(self):
        self.client.set("word", "abc")
        error = raises(redis.ResponseError, lambda: self.client.incr("word"))
        equal(str(error), "value is not an integer or out of range")

    def unknown_command(self):
        error = raises(redis.ResponseError, lambda: self.client.execute_command("NOSUCHCOMMAND", "x"))
        equal(str(error).startswith("unknown command"), True)
        equal(self.client.ping(), True)

    def password(self):
        with redis.Redis(port=LOCKED_PORT, password=PASSWORD, **self.options) as client:
            equal(client.ping(), True)
        with redis.Redis(port=LOCKED_PORT, username="default", password=PASSWORD, **self.options) as client:
            equal(client.set("locked", "x"), True)

    def wrong_password(self):
        # The default is ten retries with a growing pause, also for a refused password: three seconds of waiting.
        options = {"port": LOCKED_PORT, "retry": Retry(NoBackoff(), 0), **self.options}
        raises(redis.AuthenticationError, lambda: redis.Redis(password="no", **options).ping())

    def no_password(self):
        options = {"port": LOCKED_PORT, "retry": Retry(NoBackoff(), 0), **self.options}
        raises(redis.AuthenticationError, lambda: redis.Redis(**options).ping())

    def reconnect(self):
        victim = redis.Redis(port=PORT, **self.options)
        before = victim.client_id()
        equal(self.client.client_kill_filter(_id=before), 1)
        equal(victim.client_id() > before, True)
        victim.close()

    def listen(self):
        with self.client.pubsub() as listener, redis.Redis(port=PORT, **self.options) as publisher:
            listener.subscribe("news")
            listener.psubscribe("n*")
            kinds = [listener.get_message(timeout=10)["type"] for _ in range(2)]
            equal(kinds, ["subscribe", "psubscribe"])
            equal(publisher.publish("news", MEGABYTE), 2)
            equal(publisher.pubsub_numsub("news"), [(b"news", 1)])
            for kind in ("message", "pmessage"):
                message = listener.get_message(timeout=10)
                equal((message["type"], message["channel"], message["data"]), (kind, b"news", MEGABYTE))
            listener.unsubscribe()
            listener.punsubscribe()
            kinds = [listener.get_message(timeout=10)["type"] for _ in range(2)]
            equal(kinds, ["unsubscribe", "punsubscribe"])
            equal(publisher.publish("news", "nobody hears"), 0)


async def asyncio_checks():
    """The asyncio client has a connection and a parser of its own: the checks that meet them."""
    client = redis.asyncio.Redis(port=PORT)
    try:
        equal(await client.ping(), True)
        equal(await client.set("asyncio", MEGABYTE), True)
        equal(await client.get("asyncio"), MEGABYTE)
        pipe = client.pipeline(transaction=False)
        for i in range(1000):
            pipe.set(f"asyncio:{i}", i)
        equal(await pipe.execute(), [True] * 1000)
        equal(len({key async for key in client.scan_iter("asyncio:*")}), 1000)
        results = await asyncio.gather(*(client.incr("asyncio-counter") for _ in range(100)))
        equal(sorted(results), list(range(1, 101)))
    finally:
        await client.aclose()


def cache_checks():
    """Client-side caching as the documentation turns it on, with its defaults."""
    caching = redis.Redis(port=PORT, protocol=3, cache_config=CacheConfig(), decode_responses=True)
    with caching, redis.Redis(port=PORT, decode_responses=True) as other:
        caching.flushall()
        cache = caching.get_cache()
        equal(caching.set("city", "New York"), True)
        equal([caching.get("city") for _ in range(3)], ["New York"] * 3)
        equal(cache.size, 1)
        equal(caching.mget("city", "absent"), ["New York", None])
        other.set("city", "Paris")
        until(lambda: caching.get("city") == "Paris")
        until(lambda: caching.mget("city", "absent") == ["Paris", None])
        # Its own change is one too.
        caching.set("city", "Rome")
        until(lambda: caching.get("city") == "Rome")
        other.pexpire("city", 1)
        until(lambda: caching.get("city") is None)
        other.mset({f"city:{i}": i for i in range(100)})
        equal([caching.get(f"city:{i}") for i in range(100)], [str(i) for i in range(100)])
        other.flushall()
        until(lambda: all(caching.get(f"city:{i}") is None for i in range(100)))


def until(holds):
    """Waits for something that comes true in its own time."""
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come true")


def attempt(mode, name, call):
    """Runs one check and prints its line."""
    try:
        call()
        print(f"ok {mode} {name}", flush=True)
        return True
    except Exception as error:  # The report of a failed check is its whole purpose.
        traceback.print_exc()
        print(f"not ok {mode} {name}: {error}", flush=True)
        return False


def main():
    print(f"version {redis.__version__}", flush=True)
    passed = True
    for mode, options in MODES.items():
        checks = Checks(options)
        for name in (name for name in vars(Checks) if not name.startswith("_")):
            passed &= attempt(mode, name, getattr(checks, name))
        checks.client.close()
    passed &= attempt("asyncio", "all", lambda: asyncio.run(asyncio_checks()))
    passed &= attempt("cache", "all", cache_checks)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
