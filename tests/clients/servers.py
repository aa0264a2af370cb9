"""Servers that tests/clients/run starts: processes with directories of their own, killed and removed at the end."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START_SECONDS = 10
# Ports that the system gives to nobody who asks for just any.
FIXED_PORTS = range(22000, 31000)


class NotStarted(Exception):
    """A server ended before it accepted a connection, or accepted none for too long."""


class Server:
    """A server process on a loopback port."""

    def __init__(self, binary, *options, port=None):
        self.directory = Path(tempfile.mkdtemp(prefix="ferrite-clients-"))
        self.port = port or free_port()
        self.command = [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory), *options]
        try:
            self.start()
        except NotStarted:
            self.stop()
            raise

    def start(self):
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while not self.accepts():
            if not self.alive() or time.monotonic() > deadline:
                raise NotStarted(f"{' '.join(map(str, self.command))} did not start:\n{self.output()}")
            time.sleep(0.02)

    def accepts(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def ask(self, request):
        """Sends one inline request. Returns the first line of the reply, or what a bulk string holds."""
        with socket.create_connection(("127.0.0.1", self.port), START_SECONDS) as connection, connection.makefile("rwb") as stream:
            stream.write(request.encode() + b"\r\n")
            stream.flush()
            line = stream.readline().decode().rstrip()
            return stream.read(int(line[1:])).decode() if line.startswith("$") else line

    def alive(self):
        return self.process.poll() is None

    def output(self):
        return (self.directory / "log").read_text(errors="replace")[-4000:]

    def kill(self):
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.kill()
        shutil.rmtree(self.directory)


def start(binary, *options):
    """A server that keeps nothing, with these options; the end of the program if it does not start."""
    try:
        return Server(binary, "--appendonly", "no", "--save", "", *options)
    except NotStarted as failure:
        sys.exit(str(failure))


def free_port():
    """A port that was free a moment ago. $CLIENTS_PORTS may narrow the choice, as FIRST-LAST."""
    if "CLIENTS_PORTS" not in os.environ:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]
    first, last = map(int, os.environ["CLIENTS_PORTS"].split("-"))
    return first_free(range(first, last + 1), 1)[0]


def fixed_ports(count):
    """Ports that were free a moment ago, and that stay free while no server uses them."""
    if "CLIENTS_PORTS" in os.environ:
        first, last = map(int, os.environ["CLIENTS_PORTS"].split("-"))
        return first_free(range(first, last + 1), count)
    return first_free(random.sample(FIXED_PORTS, len(FIXED_PORTS)), count)


def first_free(ports, count):
    found = []
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    sys.exit(f"no {count} free ports in {min(ports)}-{max(ports)}")
