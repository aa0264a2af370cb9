"""Messages of channels_redis `core` between two processes, through a kill of the server with `appendfsync always`.

One process sends to a channel of the other, which is a member of a group. The server is killed and started again in the middle of
it. Then the other receives: each message whose sending was confirmed is there once, and in order; so are messages to the group.
"""

import asyncio
import copy
import os
import sys
import threading
from importlib.metadata import version
from pathlib import Path

from channels_redis.core import RedisChannelLayer
from redis.exceptions import ConnectionError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import servers  # noqa: E402

BINARY = os.environ["CLIENTS_SERVER"]
# Messages that are sent around the kill, at least as many before and after it; and to the group.
COUNT, GROUP_COUNT = 20, 10
PAUSE_SECONDS, RECEIVE_SECONDS = 0.005, 60


async def insist(call, *words):
    """Asks until there is an answer."""
    while True:
        try:
            return await call(*words)
        except (ConnectionError, OSError):
            await asyncio.sleep(PAUSE_SECONDS)


async def receive(port):
    """The other process: prints its channel, and once its input says so, all that it receives."""
    layer = RedisChannelLayer(hosts=[("127.0.0.1", port)])
    channel = await layer.new_channel()
    await layer.group_add("group", channel)
    print(channel, flush=True)
    sys.stdin.readline()
    number = ""
    while number != "end":
        message = await asyncio.wait_for(insist(layer.receive, channel), RECEIVE_SECONDS)
        number = message["number"]
        print(number, flush=True)


async def send(server):
    """What was confirmed, what was cut, and what the other process has received."""
    here = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "receive", str(server.port), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )  # fmt: skip
    channel = (await here.stdout.readline()).decode().strip()
    layer = RedisChannelLayer(hosts=[("127.0.0.1", server.port)])
    confirmed, cut = [], set()
    restart = threading.Thread(target=lambda: (server.kill(), server.start()))
    after = 0
    while after < COUNT:
        if len(confirmed) == COUNT and not restart.ident:
            restart.start()
        number = f"one{len(confirmed) + len(cut):03}"
        try:
            await layer.send(channel, {"type": "message", "number": number})
            confirmed.append(number)
            after += bool(cut)
        except (ConnectionError, OSError):
            cut.add(number)
            await asyncio.sleep(PAUSE_SECONDS)
    restart.join()
    for serial in range(GROUP_COUNT):
        number = f"two{serial:03}"
        await layer.group_send("group", {"type": "message", "number": number})
        confirmed.append(number)
    await layer.send(channel, {"type": "message", "number": "end"})
    output, _ = await here.communicate(b"receive\n")
    received = output.decode().split()
    return {"confirmed": [*confirmed, "end"], "cut": cut, "received": received, "status": here.returncode}


def problem(facts):
    received = facts["received"]
    missing = [number for number in facts["confirmed"] if received.count(number) != 1]
    strangers = set(received) - set(facts["confirmed"]) - facts["cut"]
    if missing:
        return f"not received once: {missing}"
    if strangers or facts["status"]:
        return f"never sent: {strangers}, exit {facts['status']}"
    return None if received == sorted(received, key=lambda number: (number == "end", number)) else f"not in order: {received}"


def spoil(facts):
    """Facts with one mistake each."""
    for change in (
        lambda spoiled: spoiled["received"].remove(spoiled["confirmed"][0]),
        lambda spoiled: spoiled["received"].append(spoiled["confirmed"][0]),
        lambda spoiled: spoiled["received"].append("another"),
        lambda spoiled: spoiled["received"].reverse(),
    ):
        spoiled = copy.deepcopy(facts)
        change(spoiled)
        yield spoiled


def main():
    print("version", "channels_redis", version("channels_redis"), flush=True)
    passed = True
    for threads in ("1", "4"):
        options = [] if Path(BINARY).name.startswith("redis") else ["--threads", threads]
        server = servers.Server(
            BINARY, "--appendonly", "yes", "--appendfsync", "always", "--save", "", *options, port=servers.fixed_ports(1)[0]
        )  # fmt: skip
        try:
            facts = asyncio.run(send(server))
        finally:
            server.stop()
        blind = not all(map(problem, spoil(facts)))
        for name, found in (("messages_kept", problem(facts)), ("mistakes_are_found", "not all" if blind else None)):
            print(f"not ok threads-{threads} {name}: {found}" if found else f"ok threads-{threads} {name}", flush=True)
            passed = passed and not found
    return 0 if passed else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["receive"]:
        asyncio.run(receive(int(sys.argv[2])))
    else:
        sys.exit(main())
