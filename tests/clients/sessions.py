#!/usr/bin/env python3
"""Sessions that two web servers share, through kills with `appendfsync always`: each counts on from its last answer.

    sessions.py KILLS COMMAND...    COMMAND is a web server's program, as `node node/sessions.mjs`

COMMAND PORT prints its own port, and ends when its input ends. It answers GET / with how often the session has asked, or with 503
if the store is away: then the request counts, or not.
"""

import http.client
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import servers

BINARY = os.environ["CLIENTS_SERVER"]
SESSIONS = 5
# Rounds of requests between one kill and the next, and a pause when the store is away.
ROUNDS, PAUSE_SECONDS = 10, 0.01


class Session:
    """A visitor of web servers, with a cookie."""

    def __init__(self):
        self.cookie = ""
        # What was answered, and how many requests since then may have counted.
        self.count, self.unsure = 0, 0

    def ask(self, port):
        """Asks a web server. Returns a problem, or nothing."""
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/", headers={"cookie": self.cookie} if self.cookie else {})
        answer = connection.getresponse()
        body, cookie = answer.read().decode(), answer.getheader("set-cookie")
        connection.close()
        if answer.status == 503:
            self.unsure += 1
            time.sleep(PAUSE_SECONDS)
            return None
        if cookie and self.cookie:
            return f"the session with {self.count} requests is lost"
        self.cookie = self.cookie or cookie.split(";")[0]
        return self.answered(int(body))

    def answered(self, count):
        before, unsure = self.count, self.unsure
        self.count, self.unsure = count, 0
        return None if before < count <= before + unsure + 1 else f"{count} after {before} and {unsure} unsure requests"


def play(server, command, kills):
    """Returns problems, and how many requests were answered."""
    programs = [
        subprocess.Popen([*command, str(server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]  # fmt: skip
    try:
        ports = [int(program.stdout.readline()) for program in programs]
        sessions = [Session() for _ in range(SESSIONS)]
        problems = []

        def round_trip():
            problems.extend(filter(None, (session.ask(port) for session in sessions for port in ports)))

        for _ in range(ROUNDS):
            round_trip()
        for _ in range(kills):
            restart = threading.Thread(target=lambda: (server.kill(), server.start()))
            restart.start()
            while restart.is_alive():
                round_trip()
            for _ in range(ROUNDS):
                round_trip()
        # Once more until each is answered: no request is unsure.
        for session in sessions:
            while session.unsure:
                problems.extend(filter(None, [session.ask(ports[0])]))
        return problems, sum(session.count for session in sessions)
    finally:
        for program in programs:
            program.stdin.close()
            program.wait()
            program.stdout.close()


def main():
    kills, command = int(sys.argv[1]), sys.argv[2:]
    print("version", subprocess.check_output([*command, "version"], text=True).strip(), flush=True)
    passed = True
    for threads in ("1", "4"):
        options = [] if Path(BINARY).name.startswith("redis") else ["--threads", threads]
        server = servers.Server(
            BINARY, "--appendonly", "yes", "--appendfsync", "always", "--save", "", *options, port=servers.fixed_ports(1)[0]
        )  # fmt: skip
        try:
            problems, count = play(server, command, kills)
        finally:
            server.stop()
        lost, doubled = Session(), Session()
        blind = lost.answered(1) or not lost.answered(1) or doubled.answered(1) or not doubled.answered(3)
        asked = None if count > SESSIONS * ROUNDS * (kills + 1) else f"{count} requests"
        for name, found in (("sessions_kept", problems or asked), ("mistakes_are_found", blind)):
            print(f"not ok threads-{threads} {name}: {found}" if found else f"ok threads-{threads} {name}", flush=True)
            passed = passed and not found
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
