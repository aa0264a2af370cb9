"""Three nodes for the cluster clients of tests/clients/run, and what a client's program may ask of them while it runs.

A program prints `please WISH` and reads the answer, a line, from its standard input: `done`, or why it could not be done.

    swap        all nodes read a map in which every second stretch of slots has another owner, or the first map again
    down        the second node is killed
    up          it is started again

`{TAG}` with the tags of $CLIENTS_TAGS are at home at the first, second and third node of the first map. Of the keys
`key:0` to `key:9999` $CLIENTS_MOVED have another owner in the second map.
"""

import binascii
import re
import tempfile
from pathlib import Path

from servers import NotStarted, Server, fixed_ports

SLOTS = 16384
KEYS = 10_000
# The owners of stretches of slots of equal length, in the two maps. Half of them change.
STRETCHES = (0, 0, 1, 1, 2, 2), (0, 1, 1, 2, 2, 0)
ATTEMPTS = 5

CHECKS = frozenset("spread hash_tags pipeline transaction crossslot reload node_down sharded_pubsub".split())


def slot(key):
    return binascii.crc_hqx(key.encode(), 0) % SLOTS


def edge(stretch):
    """The first slot of a stretch."""
    return -(-stretch * SLOTS // len(STRETCHES[0]))


def owner(slot, stretches):
    return stretches[slot * len(stretches) // SLOTS]


def tag_of(node):
    tags = (f"tag{number}" for number in range(1000))
    return next(tag for tag in tags if owner(slot(tag), STRETCHES[0]) == node)


class Cluster:
    """See the module."""

    def __init__(self, binary):
        self.binary = binary
        self.folder = tempfile.TemporaryDirectory(prefix="ferrite-clients-")
        self.map = Path(self.folder.name) / "map.toml"
        self.nodes = []
        # A port may be taken by somebody else before a node has it.
        for attempts_left in reversed(range(ATTEMPTS)):
            try:
                return self.start()
            except NotStarted:
                self.stop_nodes()
                if not attempts_left:
                    self.folder.cleanup()
                    raise

    def start(self):
        self.ports = fixed_ports(3)
        self.epoch, self.which = 0, 0
        self.write_map()
        for at, port in enumerate(self.ports):
            self.nodes.append(Server(
                self.binary, "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--cluster-enabled", "yes",
                "--cluster-map", str(self.map), "--cluster-node", f"node{at}", port=port,
            ))  # fmt: skip

    def write_map(self):
        self.epoch += 1
        text = f'name = "clients"\nepoch = {self.epoch}\n'
        stretches = STRETCHES[self.which]
        for at, port in enumerate(self.ports):
            slots = [number for number in range(len(stretches)) if stretches[number] == at]
            ranges = ", ".join(f'"{edge(number)}-{edge(number + 1) - 1}"' for number in slots)
            text += f'\n[[nodes]]\nid = "node{at}"\nhost = "127.0.0.1"\nport = {port}\nslots = [{ranges}]\n'
        self.map.write_text(text)

    def use_map(self, which):
        if which != self.which:
            self.which = which
            self.write_map()
            for answer in self.ask("CLUSTER RELOAD"):
                if answer != "+OK":
                    raise OSError(f"CLUSTER RELOAD: {answer}")

    def ask(self, request):
        return [node.ask(request) for node in self.nodes]

    def begin(self):
        """Makes it ready for the next client: all nodes up and empty, with the first map, and nothing counted."""
        self.fulfil("up")
        self.use_map(0)
        self.ask("FLUSHALL")
        self.ask("CONFIG RESETSTAT")

    def environment(self):
        moved = (owner(slot(f"key:{number}"), STRETCHES[0]) != owner(slot(f"key:{number}"), STRETCHES[1]) for number in range(KEYS))
        return {
            "CLIENTS_NODES": " ".join(f"127.0.0.1:{port}" for port in self.ports),
            "CLIENTS_TAGS": " ".join(map(tag_of, range(3))),
            "CLIENTS_MOVED": str(sum(moved)),
        }

    def fulfil(self, wish):
        """Does what a program wishes. Returns the answer to it."""
        try:
            if wish == "swap":
                self.use_map(1 - self.which)
            elif wish == "down":
                self.nodes[1].kill()
            elif wish == "up":
                if not self.nodes[1].alive():
                    self.nodes[1].start()
            else:
                return f"there is no wish {wish}"
        except (OSError, NotStarted) as error:
            return str(error).replace("\n", " ")
        return "done"

    def redirections(self):
        """How often clients were sent to another node."""
        counts = (re.search(r"errorstat_MOVED:count=(\d+)", text) for text in self.ask("INFO errorstats"))
        return sum(int(count[1]) for count in counts if count)

    def ended(self):
        return [node for node in self.nodes if not node.alive()]

    def stop_nodes(self):
        while self.nodes:
            self.nodes.pop().stop()

    def stop(self):
        self.stop_nodes()
        self.folder.cleanup()
