"""A producer and a worker of a queue on a stream, with redis-py, for tests/clients/streams.py, which says what they print."""

import os
import select
import sys
import time
from importlib.metadata import version

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

STREAM, GROUP = "numbers", "workers"
BATCH = 10
BLOCK_MS, IDLE_MS, PAUSE_SECONDS = 50, 200, 0.01


def tell(*words):
    print(*words, flush=True)


def has_ended():
    """Whether the input has ended."""
    return bool(select.select([0], [], [], 0)[0]) and not os.read(0, 1)


def produce(port, name):
    # A request that got no reply is not sent again.
    client = redis.Redis(port=port, decode_responses=True, retry=Retry(NoBackoff(), 0))
    serial = 0
    while not has_ended():
        number = f"{name}{serial:06}"
        serial += 1
        try:
            tell("added", number, client.xadd(STREAM, {"number": number}))
        except redis.exceptions.ConnectionError:
            tell("cut", number)
            time.sleep(PAUSE_SECONDS)


def work(port, name, hold_after):
    client = redis.Redis(port=port, decode_responses=True)
    acknowledged = 0
    while not has_ended():
        try:
            batch = receive(client, name)
        except redis.exceptions.ConnectionError:
            time.sleep(PAUSE_SECONDS)
            continue
        if batch and hold_after is not None and acknowledged >= hold_after:
            tell("holding")
            sys.stdin.read()
            return
        for identifier in batch:
            try:
                client.xack(STREAM, GROUP, identifier)
                tell("acked", time.monotonic_ns(), identifier)
                acknowledged += 1
            except redis.exceptions.ConnectionError:
                tell("unsure", identifier)


def receive(client, name):
    """IDs of entries that others have left, or of new ones."""
    asked, how = time.monotonic_ns(), "claimed"
    _, entries, *_ = client.xautoclaim(STREAM, GROUP, name, IDLE_MS, count=BATCH)
    if not entries:
        asked, how = time.monotonic_ns(), "new"
        found = client.xreadgroup(GROUP, name, {STREAM: ">"}, count=BATCH, block=BLOCK_MS)
        entries = found[0][1] if found else []
    for identifier, fields in entries:
        tell("got", asked, how, identifier, fields["number"])
    return [identifier for identifier, _ in entries]


def main():
    part, *words = sys.argv[1:]
    if part == "version":
        print("redis", version("redis"))
    elif part == "producer":
        produce(int(words[0]), words[1])
    else:
        work(int(words[0]), words[1], int(words[2]) if len(words) > 2 else None)


if __name__ == "__main__":
    main()
