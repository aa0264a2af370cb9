"""redis-py's `RedisCluster` against three nodes: the checks of tests/clients/cluster.py, with its defaults."""

import os
import sys
import time
import traceback

import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import ClusterCrossSlotError, RedisClusterException, RedisError

NODES = [node.split(":") for node in os.environ["CLIENTS_NODES"].split()]
TAGS = os.environ["CLIENTS_TAGS"].split()
MOVED = int(os.environ["CLIENTS_MOVED"])
KEYS = 10_000


def please(wish):
    """Asks the runner for something, and waits until it is done."""
    print(f"please {wish}", flush=True)
    equal(sys.stdin.readline().strip(), "done")


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"got {actual!r}, expected {expected!r}")


class Checks:
    """One method per check. `self.c` knows one of the nodes and has to find the others."""

    def __init__(self):
        host, port = NODES[0]
        self.c = RedisCluster(startup_nodes=[ClusterNode(host, int(port))], decode_responses=True)

    def _write(self, mark):
        """Gives every key a value with this mark: the first thousand by themselves, the others in a pipeline."""
        for number in range(1000):
            equal(self.c.set(f"key:{number}", f"{mark}{number}"), True)
        pipe = self.c.pipeline()
        for number in range(1000, KEYS):
            pipe.set(f"key:{number}", f"{mark}{number}")
        equal(pipe.execute(), [True] * (KEYS - 1000))

    def _read(self):
        """The values of all keys: the last thousand one by one, the others in a pipeline."""
        last = [self.c.get(f"key:{number}") for number in range(KEYS - 1000, KEYS)]
        pipe = self.c.pipeline()
        for number in range(KEYS - 1000):
            pipe.get(f"key:{number}")
        return pipe.execute() + last

    def spread(self):
        self._write("a")
        equal(self._read(), [f"a{number}" for number in range(KEYS)])
        sizes = [self.c.dbsize(target_nodes=node) for node in self.c.get_primaries()]
        equal((len(sizes), sum(sizes), min(sizes) > KEYS // 4), (3, KEYS, True))

    def hash_tags(self):
        for tag in TAGS:
            keys = [f"{{{tag}}}:{number}" for number in range(100)]
            equal(self.c.mset({key: key for key in keys}), True)
            equal(self.c.mget(keys), keys)
            equal(self.c.delete(*keys), 100)
        # Over several nodes, which this client does by itself.
        keys = [f"many:{number}" for number in range(100)]
        self.c.mset_nonatomic({key: key for key in keys})
        equal(self.c.mget_nonatomic(keys), keys)
        equal(self.c.delete(*keys), 100)

    def pipeline(self):
        pipe = self.c.pipeline()
        for number in range(500):
            pipe.incrby(f"pipe:{number}", number).get(f"pipe:{number}")
        equal(pipe.execute(), [reply for number in range(500) for reply in (number, str(number))])
        for number in range(500):
            pipe.delete(f"pipe:{number}")
        equal(pipe.execute(), [1] * 500)

    def transaction(self):
        with self.c.pipeline(transaction=True) as pipe:
            pipe.watch(f"{{{TAGS[1]}}}:count")
            equal(pipe.get(f"{{{TAGS[1]}}}:count"), None)
            pipe.multi()
            pipe.set(f"{{{TAGS[1]}}}:count", 1).incr(f"{{{TAGS[1]}}}:count").delete(f"{{{TAGS[1]}}}:count")
            equal(pipe.execute(), ["OK", 2, 1])

    def crossslot(self):
        for call in (
            # This client sees it by itself.
            lambda: self.c.mset({"foo": 1, "bar": 2}),
            lambda: self.c.execute_command("RENAME", "foo", "bar"),
        ):
            try:
                call()
            except RedisClusterException as error:
                equal("slot" in str(error), True)
            else:
                raise AssertionError("keys of two slots were accepted")
        try:
            self.c.execute_command("RENAME", "foo", "bar", target_nodes=self.c.get_node_from_key("foo"))
        except ClusterCrossSlotError as error:
            equal(str(error), "Keys in request don't hash to the same slot")
        else:
            raise AssertionError("the server took keys of two slots")

    def reload(self):
        please("swap")
        self._write("b")
        equal(self._read(), [f"b{number}" for number in range(KEYS)])
        please("swap")
        # What has moved lies where it was before, with the values of then.
        values = self._read()
        equal([value[1:] for value in values], [str(number) for number in range(KEYS)])
        equal(sum(value.startswith("a") for value in values), MOVED)
        please("swap")
        equal(self._read(), [f"b{number}" for number in range(KEYS)])
        please("swap")
        equal(self._read(), values)

    def node_down(self):
        for tag in TAGS:
            equal(self.c.set(f"{{{tag}}}:down", tag), True)
        please("down")
        for tag in (TAGS[0], TAGS[2]):
            equal([self.c.get(f"{{{tag}}}:down") for _ in range(100)], [tag] * 100)
        please("up")
        until(lambda: self.c.get(f"{{{TAGS[1]}}}:down") == TAGS[1])
        equal([value[1:] for value in self._read()], [str(number) for number in range(KEYS)])

    def sharded_pubsub(self):
        for tag in TAGS:
            listener = self.c.pubsub()
            listener.ssubscribe(tag)
            # The first message tells of the subscription.
            equal(listener.get_sharded_message(timeout=10, target_node=self.c.get_node_from_key(tag))["type"], "ssubscribe")
            equal(self.c.spublish(tag, "news"), 1)
            message = listener.get_sharded_message(timeout=10, target_node=self.c.get_node_from_key(tag))
            equal((message["type"], message["channel"], message["data"]), ("smessage", tag, "news"))
            listener.close()


def until(holds):
    """Waits for something that comes true in its own time."""
    for _ in range(3000):
        try:
            if holds():
                return
        except RedisError:
            pass
        time.sleep(0.01)
    raise AssertionError("it did not come true")


def main():
    print(f"version {redis.__version__}", flush=True)
    passed = True
    checks = Checks()
    for name in (name for name in vars(Checks) if not name.startswith("_")):
        try:
            getattr(checks, name)()
            print(f"ok cluster {name}", flush=True)
        except Exception as error:  # The report of a failed check is its whole purpose.
            traceback.print_exc()
            print(f"not ok cluster {name}: {str(error)[:300]}", flush=True)
            passed = False
    checks.c.close()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
