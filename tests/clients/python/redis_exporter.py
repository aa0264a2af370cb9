"""redis_exporter scrapes the server: what it finds in INFO, the slow log, latency and the configuration, and nothing in its log
that is an error or a warning.
"""

import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.request

from resp import Connection, encode

PROGRAM = "prometheus-redis-exporter"
PORT = int(os.environ["CLIENTS_PORT"])
LOCKED_PORT = int(os.environ["CLIENTS_LOCKED_PORT"])
PASSWORD = os.environ["CLIENTS_PASSWORD"]
START_SECONDS = 20
KEYS = 50
GETS = 7


def use(port, *login):
    """Something to scrape: keys, an expiry, hits and misses, an error, an event."""
    with Connection(port) as connection:
        requests = [login] if login else []
        requests += [("FLUSHALL",), ("CONFIG", "SET", "latency-monitor-threshold", "1"), ("SET", "volatile", "1", "EX", "1000")]
        requests += [("SET", f"exported:{number}", "value") for number in range(KEYS)]
        requests += [("GET", "exported:1")] * GETS + [("NOSUCH",), ("DEBUG", "SLEEP", "0.02")]
        requests.append(("ECHO", "end"))
        connection.send(b"".join(encode(*request) for request in requests))
        while connection.stream.readline() != b"end\r\n":
            pass


def scrape(port, folder, *options):
    """The figures of one scrape, and what the exporter logged."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        own = probe.getsockname()[1]
    log = os.path.join(folder, f"log-{port}")
    command = [PROGRAM, f"-redis.addr=redis://127.0.0.1:{port}", f"-web.listen-address=127.0.0.1:{own}", *options]
    command += ["-check-keys=exported:*", "-check-single-keys=volatile", "-include-system-metrics", "-export-client-list"]
    with open(log, "wb") as output:
        exporter = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{own}/metrics", timeout=START_SECONDS) as answer:
                    text = answer.read().decode()
                break
            except OSError:
                if exporter.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
    finally:
        exporter.terminate()
        exporter.wait()
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    with open(log, encoding="utf-8", errors="replace") as logged:
        return {name: float(value) for name, _, value in lines}, logged.read()


def check(figures, logged):
    complaints = [line for line in logged.splitlines() if re.search(r"level=(error|warn|fatal)|panic", line, re.I)]
    if complaints:
        raise AssertionError("it complains: " + "; ".join(complaints[:5]))
    expected = {
        "redis_up": 1,
        "redis_exporter_last_scrape_error": 0,
        'redis_db_keys{db="db0"}': KEYS + 1,
        'redis_db_keys_expiring{db="db0"}': 1,
        "redis_connected_slaves": 0,
    }
    # The label of the error that a scrape had is part of the name.
    plain = {re.sub(r'\{err="[^"]*"\}', "", name): value for name, value in figures.items()}
    for name, value in expected.items():
        if plain.get(name) != value:
            raise AssertionError(f"{name} is {plain.get(name)}, not {value}")
    for name, least in {
        "redis_memory_used_bytes": 1000,
        "redis_commands_processed_total": KEYS,
        "redis_keyspace_hits_total": GETS,
        'redis_commands_total{cmd="set"}': KEYS,
        'redis_commands_duration_seconds_total{cmd="set"}': 0,
        "redis_slowlog_length": 1,
        "redis_uptime_in_seconds": 0,
        "redis_config_maxclients": 1,
        'redis_latency_spike_last{event_name="command"}': 0,
        'redis_key_size{db="db0",key="volatile"}': 1,
    }.items():
        if not plain.get(name, -1) >= least:
            raise AssertionError(f"{name} is {plain.get(name)}, expected at least {least}")


def main():
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"v?(\d+\.\d+\.\d+)", version.stdout + version.stderr)
    print("version", found.group(1) if found else "?")
    with tempfile.TemporaryDirectory() as folder:
        for mode, port, login, options in [
            ("open", PORT, (), ()),
            ("password", LOCKED_PORT, ("AUTH", PASSWORD), (f"-redis.password={PASSWORD}",)),
        ]:
            try:
                use(port, *login)
                check(*scrape(port, folder, *options))
                print("ok", mode, "scrape")
            except (AssertionError, OSError) as error:
                print("not ok", mode, f"scrape: {error}")


main()
