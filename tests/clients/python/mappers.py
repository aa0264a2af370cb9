"""walrus and redis-om, for tests/clients/restarted.py: containers, locks, limits and models, through a kill of the server.

    mappers.py walrus|redis-om version|PORT MODE

Of redis-om what needs no module is used: models are saved and read by their keys, and no query looks for them.
"""

import sys
import threading
import time
import traceback
from importlib.metadata import version

import redis

PATIENCE_SECONDS, PAUSE_SECONDS = 60, 0.01


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r} instead of {expected!r}")


def until(condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        equal(time.monotonic() < end, True)
        time.sleep(PAUSE_SECONDS)


def restart(clients):
    print("please restart", flush=True)
    sys.stdin.readline()

    def answers():
        try:
            return all(client.ping() for client in clients)
        except redis.ConnectionError:
            # The first request finds the connection that broke.
            return False

    until(answers)


def together(function, count):
    """The results of a function in so many threads."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(function())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(len(results), count)
    return results


class Walrus:
    """Two clients of walrus."""

    def __init__(self, port):
        from walrus import Database

        self.a, self.b = Database(port=port), Database(port=port)

    def hashes(self):
        found = self.a.Hash("hash")
        found.update(a="1", b="2")
        found["n"] = 1
        equal(found.incr("n", 4), 5)
        equal(self.b.Hash("hash").as_dict(decode=True), {"a": "1", "b": "2", "n": "5"})
        del found["a"]
        equal(("a" in found, len(found), sorted(found.keys())), (False, 2, [b"b", b"n"]))
        equal(dict(found.search("b*")), {b"b": b"2"})

    def lists(self):
        found = self.a.List("list")
        found.extend("abc")
        found.prepend("z")
        found.insert_after("y", "z")
        equal(self.b.List("list").as_list(decode=True), list("zyabc"))
        equal(found[1:3], [b"y", b"a"])
        # That is LTRIM.
        del found[1:3]
        equal((found.popleft(), found.popright(), len(found)), (b"y", b"a", 0))
        timer = threading.Timer(0.05, lambda: self.b.List("waited").append("x"))
        timer.start()
        equal(self.a.List("waited").bpopleft(PATIENCE_SECONDS), b"x")
        timer.join()

    def sets(self):
        found, other = self.a.Set("set"), self.b.Set("other set")
        found.add(*"abc")
        other.add(*"bcd")
        equal((found & other, found - other, found | other), ({b"b", b"c"}, {b"a"}, {b"a", b"b", b"c", b"d"}))
        found &= other
        equal(found.as_set(decode=True), {"b", "c"})
        equal(sorted(other), [b"b", b"c", b"d"])
        equal(self.a.List("numbers").extend([3, 1, 2]), 3)
        equal(self.a.List("numbers").sort(), [b"1", b"2", b"3"])

    def sorted_sets(self):
        found = self.a.ZSet("zset")
        found.add({f"m{number}": number for number in range(10)})
        equal((found.score("m3"), found.rank("m3"), found.count(2, 4)), (3.0, 3, 3))
        equal((found[:2], found[:"m2"]), ([b"m0", b"m1"], [b"m0", b"m1"]))
        equal(found.incr("m0", 20), 20.0)
        equal(found.popmax(), [(b"m0", 20.0)])
        equal(found.range_by_score(8, 9), [b"m8", b"m9"])
        equal(self.b.ZSet("zset").bpopmin(1), (b"m1", 1.0))
        equal(found.remove_by_rank(0, 1), 2)
        equal(len(found), 6)

    def arrays(self):
        """An array is a hash that scripts keep."""
        found = self.a.Array("array")
        found.extend(["a", "b", "c", "d"])
        equal(self.b.Array("array").as_list(decode=True), list("abcd"))
        equal((found.pop(), found.pop(0), len(found), found[0]), (b"d", b"a", 2, b"b"))
        equal("c" in found, True)

    def streams(self):
        for number in range(5):
            self.a.Stream("stream").add({"n": number})
        group = self.b.consumer_group("group", ["stream"])
        group.create()
        group.set_id("0")
        ((_, entries),) = group.read(count=3)
        equal([fields[b"n"] for _, fields in entries], [b"0", b"1", b"2"])
        equal(group.stream.ack(entries[0][0]), 1)
        equal(len(group.stream.pending()), 2)
        other = group.consumer("other")
        equal(len(other.stream.autoclaim("other", 0)[1]), 2)
        line = self.a.time_series("events", ["stream a", "stream b"])
        line.create()
        for number in range(4):
            line.streams[f"stream {'ab'[number % 2]}"].add({"n": number})
        # Entries of two streams may have the same ID.
        equal(sorted(message.data["n"] for message in line.read()), list("0123"))

    def bits(self):
        field = self.a.bit_field("bits")
        equal(field.incrby("u8", 0, 250).incrby("u8", 0, 10, "SAT").get("u8", 0).execute(), [250, 255, 255])
        bloom = self.a.bloom_filter("bloom")
        bloom.add("foo")
        equal(("foo" in self.b.bloom_filter("bloom"), "bar" in bloom), (True, False))
        counts = self.a.HyperLogLog("counts")
        counts.add(*range(100))
        equal(95 < len(counts) < 105, True)

    def scripts(self):
        self.a["cas"] = "one"
        equal((self.a.cas("cas", "one", "two"), self.b.cas("cas", "one", "three"), self.a["cas"]), (True, False, b"two"))
        graph = self.a.graph("graph")
        for subject, friends in {"ann": ["ben", "cat"], "ben": ["cat"]}.items():
            for friend in friends:
                graph.store(subject, "friend", friend)
        equal([edge["o"] for edge in self.b.graph("graph").query(s="ann", p="friend")], ["ben", "cat"])
        found = graph.search((graph.v.x, "friend", "cat"), (graph.v.x, "friend", "ben"))
        equal(found, {"x": {"ann"}})

    def completion(self):
        names = self.a.autocomplete()
        for key, title in {"1": "testing walrus", "2": "walrus cheese", "3": "another"}.items():
            names.store(key, title)
        equal(sorted(self.b.autocomplete().search("wal")), ["testing walrus", "walrus cheese"])

    def counters(self):
        counter = self.a.counter("counter")
        together(lambda: [self.b.counter("counter").incr() for _ in range(50)], 4)
        equal(counter.value(), 200)

    def locks(self):
        lock, same = self.a.lock("lock", ttl=2000), self.b.lock("lock", ttl=2000)
        equal((lock.acquire(block=False), same.acquire(block=False), same.release()), (True, False, False))
        waiting = threading.Thread(target=same.acquire)
        waiting.start()
        equal(lock.release(), True)
        waiting.join()
        equal((lock.acquire(block=False), same.release()), (False, True))
        # Free when its time to live ends.
        equal(self.a.lock("ends", ttl=300).acquire(block=False), True)
        until(lambda: self.b.lock("ends", ttl=300).acquire(block=False))

        def add():
            for _ in range(20):
                with self.b.lock("sum", ttl=60_000):
                    self.b["sum"] = int(self.b.get("sum") or 0) + 1

        together(add, 4)
        equal(int(self.a["sum"]), 80)

    def limits(self):
        for make in (self.a.rate_limit, self.a.rate_limit_lua):
            limit = make(make.__name__, limit=5, per=3600)
            equal([limit.limit("key") for _ in range(7)], [False] * 5 + [True] * 2)
        limits = [client.rate_limit_lua("both", limit=20, per=3600) for client in (self.a, self.b)]
        found = together(lambda: [limit.limit("key") for limit in limits for _ in range(5)], 4)
        equal(sum(limited is False for each in found for limited in each), 20)

    def caches(self):
        cache, calls = self.a.cache("cache"), []
        double = cache.cached(timeout=60)(lambda number: calls.append(number) or number * 2)
        equal((double(4), double(4), calls), (8, 8, [4]))
        cache.set_many({"a": 1, "b": [2]}, timeout=60)
        equal(self.b.cache("cache").get_many(["a", "b", "c"]), {"a": 1, "b": [2]})
        cache.set("ends", 1, 1)
        until(lambda: cache.get("ends") is None)
        cache.flush()
        equal(list(cache.keys()), [])

    def transactions(self):
        with self.a.atomic() as transaction:
            transaction.pipe.set("of transaction", "1")
            transaction.pipe.rpush("list of transaction", "x")
            equal("of transaction" in self.b, False)
        equal(self.b["of transaction"], b"1")

    def models(self):
        import walrus

        class Person(walrus.Model):
            __database__ = self.a
            name = walrus.TextField(primary_key=True)
            city = walrus.TextField(index=True)
            age = walrus.IntegerField(index=True)
            friends = walrus.SetField()

        for age, (name, city) in enumerate([("ann", "bonn"), ("ben", "bonn"), ("cat", "kiel")]):
            Person.create(name=name, city=city, age=age)
        Person.load("ann").friends.add("ben")
        equal(sorted(each.name for each in Person.query(Person.city == "bonn")), ["ann", "ben"])
        equal([each.name for each in Person.query((Person.age > 0) & (Person.city == "bonn"))], ["ben"])
        equal([each.name for each in Person.query(order_by=Person.age.desc())], ["cat", "ben", "ann"])
        equal(Person.load("ann").friends.as_set(decode=True), {"ben"})
        Person.load("ben").delete()
        equal(Person.count(), 2)

    def kept(self):
        self.a.Hash("kept hash").update(a="1")
        self.a.ZSet("kept zset").add({"m": 1.5})
        self.a.Array("kept array").extend("ab")
        self.a.cache("kept").set("long", [1], 3600)
        self.a.cache("kept").set("short", [1], 1)
        lock = self.a.lock("kept", ttl=3_600_000)
        equal(lock.acquire(block=False), True)
        limit = self.a.rate_limit_lua("kept limit", limit=3, per=3600)
        equal([limit.limit("key") for _ in range(2)], [False, False])
        restart([self.a, self.b])
        equal(self.b.Hash("kept hash").as_dict(decode=True), {"a": "1"})
        equal((self.b.ZSet("kept zset").score("m"), self.b.Array("kept array").as_list(decode=True)), (1.5, ["a", "b"]))
        equal(self.b.cache("kept").get("long"), [1])
        until(lambda: self.b.cache("kept").get("short") is None)
        equal((self.b.lock("kept").acquire(block=False), lock.release()), (False, True))
        # The server has no scripts after its start.
        again = self.b.rate_limit_lua("kept limit", limit=3, per=3600)
        equal([again.limit("key"), again.limit("key")], [False, True])


class RedisOm:
    """Models of redis-om, which are hashes."""

    def __init__(self, port):
        import redis_om

        class Customer(redis_om.HashModel, index=True):
            name: str
            age: int
            bio: str = ""

            class Meta:
                database = redis_om.get_redis_connection(port=port)
                global_key_prefix = "om"

        self.Customer, self.NotFound = Customer, redis_om.NotFoundError
        self.client = redis.Redis(port=port, decode_responses=True)

    def make(self, count):
        return [self.Customer(name=f"name{number}", age=number) for number in range(count)]

    def is_gone(self, key):
        try:
            self.Customer.get(key)
        except self.NotFound:
            return True
        return False

    def saved(self):
        (one,) = self.make(1)
        equal(one.save(), one)
        equal(self.Customer.get(one.pk), one)
        equal(self.client.hgetall(one.key())["name"], "name0")
        one.update(age=40, bio="Ünïcode")
        equal((self.Customer.get(one.pk).age, self.Customer.get(one.pk).bio), (40, "Ünïcode"))

    def deleted(self):
        (one,) = self.make(1)
        one.save()
        equal(self.Customer.delete(one.pk), 1)
        equal(self.is_gone(one.pk), True)

    def ends(self):
        (one,) = self.make(1)
        one.save()
        one.expire(1)
        equal(0 < self.client.pttl(one.key()) <= 1000, True)
        until(lambda: self.is_gone(one.pk))

    def many(self):
        made = self.make(100)
        self.Customer.add(made)
        equal(sorted(self.Customer.all_pks()), sorted(each.pk for each in made + self.rest(made)))
        equal([self.Customer.get(each.pk).age for each in made], list(range(100)))
        equal(self.Customer.delete_many(made), 100)
        equal(all(self.is_gone(each.pk) for each in made), True)

    def rest(self, made):
        """Models that other checks have left."""
        known = {each.pk for each in made}
        return [self.Customer.get(key) for key in self.Customer.all_pks() if key not in known]

    def in_pipeline(self):
        made = self.make(10)
        with self.Customer.db().pipeline(transaction=True) as pipeline:
            for each in made:
                each.save(pipeline=pipeline)
            equal(self.is_gone(made[0].pk), True)
            pipeline.execute()
        equal([self.Customer.get(each.pk) for each in made], made)

    def kept(self):
        made = self.make(10)
        self.Customer.add(made)
        made[0].expire(3600)
        made[1].expire(1)
        restart([self.client, self.Customer.db()])
        equal([self.Customer.get(each.pk) for each in made[2:]], made[2:])
        equal(3500 < self.client.ttl(made[0].key()) <= 3600, True)
        until(lambda: self.is_gone(made[1].pk))


LIBRARIES = {"walrus": Walrus, "redis-om": RedisOm}


def main():
    name, *words = sys.argv[1:]
    if words == ["version"]:
        return print(name, version(name))
    port, mode = words
    library = LIBRARIES[name](int(port))
    checks = [check for check in vars(LIBRARIES[name]) if check not in ("__init__", "make", "is_gone", "rest") and check[0] != "_"]
    passed = True
    for check in checks:
        try:
            getattr(library, check)()
            print("ok", mode, check, flush=True)
        except Exception as error:  # The report of a failed check is its whole purpose.
            traceback.print_exc()
            print("not ok", mode, f"{check}: {type(error).__name__}: {error}", flush=True)
            passed = False
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
