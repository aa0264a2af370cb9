#!/usr/bin/env python3
"""A library's program and a server that keeps its state when it is killed, with `appendfsync always` and 1 and 4 threads.

    restarted.py THREADS COMMAND...    THREADS is such as 1,4; COMMAND a library's program

COMMAND version prints the library's version. COMMAND PORT MODE prints `ok MODE CHECK` or `not ok MODE CHECK: why` for each check,
as all programs of tests/clients/run do. When it prints `please restart`, the server is killed and started again on the same
directory, and one line is written to the program's input.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import servers

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import resp  # noqa: E402

BINARY = os.environ["CLIENTS_SERVER"]


def restart(server):
    server.kill()
    server.start()
    with resp.Connection(server.port) as connection:
        while connection.ask("PING").is_error(b"LOADING"):
            time.sleep(0.005)


def play(server, mode, command):
    """Runs the program to its end. Returns whether all is well."""
    program = subprocess.Popen(
        [*command, str(server.port), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    restarts = 0
    try:
        for line in program.stdout:
            if line != "please restart\n":
                print(line, end="", flush=True)
                continue
            restart(server)
            restarts += 1
            program.stdin.write("restarted\n")
            program.stdin.flush()
        status = program.wait()
    finally:
        program.kill()
        program.wait()
        program.stdin.close()
        program.stdout.close()
    if status == 0 and restarts:
        print(f"ok {mode} restarts: {restarts}", flush=True)
        return True
    print(f"not ok {mode} program: exit {status}, {restarts} restarts", flush=True)
    return False


def main():
    threads, command = sys.argv[1].split(","), sys.argv[2:]
    print("version", subprocess.check_output([*command, "version"], text=True).strip(), flush=True)
    passed = True
    for count in threads:
        options = [] if Path(BINARY).name.startswith("redis") else ["--threads", count]
        server = servers.Server(
            BINARY, "--appendonly", "yes", "--appendfsync", "always", "--save", "", *options, port=servers.fixed_ports(1)[0]
        )  # fmt: skip
        try:
            passed = play(server, f"threads-{count}", command) and passed
        finally:
            server.stop()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
