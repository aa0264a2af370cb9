"""redis-cli against the server: at a terminal, as a filter, over both protocols, and its keyspace reports."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

PORT = os.environ["CLIENTS_PORT"]
LOCKED_PORT = os.environ["CLIENTS_LOCKED_PORT"]
PASSWORD = os.environ["CLIENTS_PASSWORD"]
TIMEOUT_SECONDS = 120
MODES = {"resp2": ["-2"], "resp3": ["-3"]}


def cli(*arguments, port=PORT, stdin=b"", environment=None):
    """Runs redis-cli to its end and returns its output; a failure of the program is a failure of the check."""
    environment = {**os.environ, **(environment or {})}
    command = ["redis-cli", "-p", port, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT_SECONDS, env=environment, check=False)
    if done.returncode:
        raise AssertionError(f"{command} exited with {done.returncode}: {done.stdout!r} {done.stderr!r}")
    return done.stdout.decode(errors="replace")


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"got {actual!r}, expected {expected!r}")


def contains(text, *needed):
    for part in needed:
        if part not in text:
            raise AssertionError(f"{part!r} is not in {text!r}")


class Terminal:
    """redis-cli at a pseudo terminal, as a person uses it: hints, prompt and formatted replies."""

    def __init__(self, *arguments):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            # Without a size the line editor asks the terminal where its cursor is, and waits for the answer.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
            os.execvp("redis-cli", ["redis-cli", *arguments])
        self.pid = pid
        self.received = self.screen = ""

    def until(self, text):
        """Reads until `text` has appeared, and forgets everything up to there."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while text not in self.screen:
            if not select.select([self.fd], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} did not appear in {self.screen!r}")
            try:
                self.received += os.read(self.fd, 65536).decode(errors="replace")
            except OSError as error:
                raise AssertionError(f"redis-cli ended before {text!r}: {self.screen!r}") from error
            # Colours and cursor movements are how, not what.
            self.screen = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", self.received)
        self.received = self.screen = self.screen.split(text, 1)[1]

    def enter(self, line, answer, prompt=f"127.0.0.1:{PORT}> "):
        """Types a line. The next must not be typed before the prompt is back: what comes earlier is thrown away."""
        os.write(self.fd, line.encode() + b"\r")
        self.until(answer)
        self.until(prompt)

    def end(self):
        os.write(self.fd, b"exit\r")
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        equal(os.waitstatus_to_exitcode(status), 0)


def interactive(options):
    terminal = Terminal("-p", PORT, *options)
    terminal.until(f"127.0.0.1:{PORT}> ")
    terminal.enter("SET greeting hello", "\r\nOK\r\n")
    terminal.enter("GET greeting", '\r\n"hello"\r\n')
    terminal.enter("GET absent", "\r\n(nil)\r\n")
    terminal.enter("STRLEN greeting", "\r\n(integer) 5\r\n")
    terminal.enter("INCR greeting", "\r\n(error) ERR value is not an integer or out of range\r\n")
    terminal.enter("nosuchcommand", "\r\n(error) ERR unknown command ")
    elsewhere = f"127.0.0.1:{PORT}[3]> "
    terminal.enter("SELECT 3", "\r\nOK\r\n", elsewhere)
    terminal.enter("MGET greeting", "\r\n1) (nil)\r\n", elsewhere)
    terminal.end()


def words(options):
    equal(cli(*options, "SET", "words", "a b\n"), "OK\n")
    equal(cli(*options, "GET", "words"), "a b\n\n")
    equal(cli(*options, "--no-raw", "GET", "words"), '"a b\\n"\n')
    equal(cli(*options, "-n", "3", "--no-raw", "GET", "words"), "(nil)\n")
    equal(cli(*options, "-x", "SET", "words", stdin=bytes(range(256))), "OK\n")
    equal(cli(*options, "--no-raw", "STRLEN", "words"), "(integer) 256\n")
    equal(cli(*options, "-r", "3", "INCR", "repeat"), "1\n2\n3\n")
    contains(cli(*options, "INFO", "server"), "redis_version:")
    contains(cli(*options, "CLIENT", "LIST"), "addr=127.0.0.1:")


def filtered(options):
    commands = "".join(f'SET line:{i} "value {i}"\n' for i in range(200))
    equal(cli(*options, stdin=commands.encode()), "OK\n" * 200)
    equal(cli(*options, "--no-raw", stdin=b"GET line:7\nGET none\n"), '"value 7"\n(nil)\n')


def hello(options):
    reply = cli(*options, "--no-raw", "HELLO", "3")
    contains(reply, '"proto" => (integer) 3', '"role" => "master"')


def as_json(options):
    cli("MSET", "j1", "one", "j2", "2")
    equal(json.loads(cli(*options, "--json", "MGET", "j1", "absent", "j2")), ["one", None, "2"])
    equal(json.loads(cli("--json", "CONFIG", "GET", "databases")), {"databases": "16"})


def mass_insertion(options):
    commands = b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\nmass:%d\r\n$1\r\nx\r\n" % (len(f"mass:{i}"), i) for i in range(5000))
    contains(cli(*options, "--pipe", stdin=commands), "errors: 0, replies: 5000")


def deep_pipe(options):
    """What `--pipe` sends while it does not read; replies of 5 bytes, and of 100 KB."""
    deepest = int(os.environ["CLIENTS_DEEPEST"])
    contains(cli(*options, "--pipe", stdin=b"SET deep 1\r\n" * deepest), f"errors: 0, replies: {deepest}")
    cli(*options, "-x", "SET", "deep", stdin=b"x" * 100_000)
    contains(cli(*options, "--pipe", stdin=b"GET deep\r\n" * (deepest // 1000)), f"errors: 0, replies: {deepest // 1000}")


def scan(options):
    cli("FLUSHALL")
    cli(*options, "--pipe", stdin=b"".join(b"SET scan:%d x\r\n" % i for i in range(1000)))
    keys = cli(*options, "--scan", "--pattern", "scan:*").split()
    equal(sorted(keys), sorted(f"scan:{i}" for i in range(1000)))


def big_keys(options):
    cli("SET", "big", "x" * 5000)
    report = cli(*options, "--bigkeys")
    contains(report, 'Biggest string found \'"big"\' has 5000 bytes', "Sampled")


def password(options):
    equal(cli(*options, "-a", PASSWORD, "--no-auth-warning", "PING", port=LOCKED_PORT), "PONG\n")
    equal(cli(*options, "PING", port=LOCKED_PORT, environment={"REDISCLI_AUTH": PASSWORD}), "PONG\n")
    equal(cli(*options, "--user", "default", "--pass", PASSWORD, "--no-auth-warning", "PING", port=LOCKED_PORT), "PONG\n")


def wrong_password(options):
    command = ["redis-cli", "-p", LOCKED_PORT, "-a", "no", "--no-auth-warning", *options, "PING"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    contains(done.stdout + done.stderr, "WRONGPASS", "NOAUTH")


CHECKS = [interactive, words, filtered, mass_insertion, deep_pipe, scan, big_keys, password, wrong_password]


def main():
    version = subprocess.run(["redis-cli", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    print(f"version {version}", flush=True)
    runs = [(mode, options, check) for mode, options in MODES.items() for check in CHECKS]
    runs += [("resp3", MODES["resp3"], hello), ("resp3", [], as_json)]
    passed = True
    for mode, options, check in runs:
        try:
            cli("FLUSHALL")
            check(options)
            print(f"ok {mode} {check.__name__}", flush=True)
        except Exception as error:  # The report of a failed check is its whole purpose.
            print(f"not ok {mode} {check.__name__}: {error}".replace("\n", "\\n"), flush=True)
            passed = False
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
