"""A plugin of pytest for scripts/suites: what became of each test, and the version that tests choose by.

SUITES_OUTCOMES is a file that gets lines for each test: its name, its outcome and why, between tabs. The last one of a name counts,
and the file ends with a line `end`. A test with a line is not run again: a run that a test has ended is taken up with the next one.
SUITES_VERSION is the version of Redis for which tests are chosen, in place of redis_version of INFO.
"""

import os
import tracemalloc

import pytest

# The suite traces each allocation, which takes twice as long, and no test asks for it.
tracemalloc.start = lambda *_: None
outcomes = {}


def tell(name, outcome, why=""):
    with open(os.environ["SUITES_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(f"{name}\t{outcome}\t{' '.join(why.split())[:400]}\n")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    facts = getattr(session.config, "REDIS_INFO", None)
    if facts and os.environ.get("SUITES_VERSION"):
        facts["version"] = os.environ["SUITES_VERSION"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    try:
        with open(os.environ["SUITES_OUTCOMES"], encoding="utf-8") as file:
            done = {line.split("\t")[0] for line in file}
    except FileNotFoundError:
        return
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_runtest_logstart(nodeid):
    tell(nodeid, "failed", "the run ended with this test")


def pytest_runtest_logreport(report):
    """The first of setup, call and teardown that is not passed counts."""
    known = outcomes.get(report.nodeid, ("passed", ""))
    if known[0] == "passed" and not report.passed:
        crash = getattr(report.longrepr, "reprcrash", None)
        why = crash.message if crash else str(report.longrepr)
        known = (report.outcome, why)
    outcomes[report.nodeid] = known


def pytest_runtest_logfinish(nodeid):
    tell(nodeid, *outcomes[nodeid])


def pytest_sessionfinish():
    tell("end", "")
