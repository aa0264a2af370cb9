"""redis-benchmark against the server. What counts is that every run ends well and says nothing strange, never its speed."""

import os
import subprocess
import sys

PORT = os.environ["CLIENTS_PORT"]
LOCKED_PORT = os.environ["CLIENTS_LOCKED_PORT"]
PASSWORD = os.environ["CLIENTS_PASSWORD"]
TIMEOUT_SECONDS = 120
MODES = {"resp2": [], "resp3": ["-3"]}
TESTS = "ping_inline,ping_mbulk,set,get,incr,mset"
TITLES = ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"]


def benchmark(*arguments, titles, port=PORT):
    """Runs it; each title must have its line of result, and the server must have answered what it asks at the start."""
    command = ["redis-benchmark", "-p", port, "-q", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    # The line of progress is overwritten with carriage returns; the last of each is the result.
    lines = [line.rsplit("\r", 1)[-1] for line in done.stdout.splitlines()]
    missing = [title for title in titles if not any(line.startswith(f"{title}: ") for line in lines)]
    if done.returncode or missing or "WARN" in done.stderr + done.stdout or "rror" in done.stderr + done.stdout:
        raise AssertionError(f"{command} exited with {done.returncode}, without {missing}: {done.stdout} {done.stderr}")


CHECKS = {
    "pipelined": lambda options: benchmark("-n", "20000", "-P", "16", "-t", TESTS, *options, titles=TITLES),
    "unpipelined": lambda options: benchmark("-n", "5000", "-c", "50", "-t", TESTS, *options, titles=TITLES),
    "random_keys": lambda options: benchmark(
        "-n", "20000", "-r", "100000", "-P", "128", "-t", "set,get", *options, titles=["SET", "GET"]
    ),
    "large": lambda options: benchmark(
        "-n", "500", "-d", "200000", "-P", "4", "-t", "set,get", *options, titles=["SET", "GET"]
    ),
    "threads": lambda options: benchmark(
        "-n", "20000", "-P", "16", "--threads", "2", "-t", "set,get", *options, titles=["SET", "GET"]
    ),
    "database_and_password": lambda options: benchmark(
        "-n", "2000", "--dbnum", "3", "-a", PASSWORD, "-t", "set,get", *options, titles=["SET", "GET"], port=LOCKED_PORT
    ),
    "own_command": lambda options: benchmark(
        "-n", "2000", *options, "SET", "key:__rand_int__", "x", titles=["SET key:__rand_int__ x"]
    ),
}


def main():
    version = subprocess.run(["redis-benchmark", "--version"], capture_output=True, text=True, check=True)
    print(f"version {version.stdout.split()[1]}", flush=True)
    passed = True
    for mode, options in MODES.items():
        for name, check in CHECKS.items():
            try:
                check(options)
                print(f"ok {mode} {name}", flush=True)
            except Exception as error:  # The report of a failed check is its whole purpose.
                print(f"not ok {mode} {name}: {error}".replace("\n", "\\n").replace("\r", "\\r"), flush=True)
                passed = False
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
