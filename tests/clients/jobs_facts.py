"""What tests/clients/jobs.py has heard, the checks of it, and mistakes that the checks must find."""

import copy
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

# Priorities in the backlog for one worker.
PRIORITIES = [3, 1, 2]
# So many jobs in so much time.
LIMIT, LIMIT_MS = 10, 300
# How often a job that is repeated runs, at least.
REPEATED = 5
# A framework reads a clock in milliseconds, and perhaps another clock of the machine.
CLOCK_NS = 10_000_000


@dataclass
class Run:
    """One run of a job."""

    job: str
    worker: str
    started: int
    finished: int | None = None
    # Its worker was killed, or the server was away, before it had finished.
    is_disturbed: bool = False


@dataclass
class Job:
    """A job that was added."""

    queue: str
    asked: int
    answered: int
    identifier: str
    delay: int
    priority: int


@dataclass
class Facts:
    """All that the programs told."""

    capabilities: dict
    added: dict = field(default_factory=dict)
    cut: set = field(default_factory=set)
    runs: list = field(default_factory=list)
    again: Counter = field(default_factory=Counter)
    results: dict = field(default_factory=dict)
    # Jobs that are repeated: when that was asked for, and how often in ms.
    repeated: dict = field(default_factory=dict)
    # When the first worker with a limit was started.
    limited_from: int = 0
    # The server was away from one moment to another.
    away: list = field(default_factory=list)
    # Jobs that killed workers, and workers at kills of the server, may have taken without a word.
    may_be_lost: int = 0

    def runs_of(self, name):
        return [run for run in self.runs if run.job.startswith(name)]

    def of_queue(self, name):
        return {job: about for job, about in self.added.items() if about.queue == name}

    def run_again(self):
        return {job for job, times in Counter(run.job for run in self.runs).items() if times > 1}

    def finished(self, binding=False):
        """When each job had finished first, or in a run that nothing has disturbed."""
        found = {}
        for run in self.runs:
            if run.finished is not None and not (binding and run.is_disturbed):
                found[run.job] = min(run.finished, found.get(run.job, run.finished))
        return found

    def is_doubled(self, job, runs):
        """Whether a framework may have added a job twice, for want of a reply: when it was asked for, or when its delay had ended."""
        about = self.added.get(job)
        if "doubles" not in self.capabilities or len(runs) > 2 or not about:
            return False
        last = max(run.started for run in runs) if about.delay else about.answered
        return any(about.asked <= until and since <= last for since, until in self.away)

    def disturb(self):
        """Marks the runs that the server's absence has disturbed."""
        for run in self.runs:
            end = run.finished or time.monotonic_ns()
            run.is_disturbed |= any(run.started <= until and end >= since for since, until in self.away)


# The checks: each returns a problem, or nothing. The second word is the capability that it needs.


def none_lost(facts):
    """Each job that was added has run and has finished, and no other has run."""
    begun = {run.job for run in facts.runs}
    finished = facts.finished()
    disturbed = {run.job for run in facts.runs if run.is_disturbed}
    lost = facts.added.keys() - begun
    unfinished = facts.added.keys() & begun - finished.keys() - disturbed
    if unfinished:
        return f"never finished, without a reason: {sorted(unfinished)}"
    if len(lost) > facts.may_be_lost:
        return f"{len(lost)} were never begun, {facts.may_be_lost} may be lost: {sorted(lost)}"
    strangers = begun - facts.added.keys() - facts.cut - facts.repeated.keys()
    return f"never added: {sorted(strangers)}" if strangers else None


def done_once(facts):
    """A job runs once, and once more for each run that was disturbed; not at all after a reply that it is done."""
    runs, finished = defaultdict(list), facts.finished(binding="given-back" in facts.capabilities)
    for run in facts.runs:
        if run.job not in facts.repeated:
            runs[run.job].append(run)
    for job, of_job in runs.items():
        if facts.is_doubled(job, of_job):
            continue
        undisturbed = [run for run in of_job if not run.is_disturbed]
        if len(undisturbed) > 1 + facts.again[job]:
            return f"{job} has run {len(of_job)} times: {of_job}"
        if "at-least-once" not in facts.capabilities and len(of_job) > 1:
            return f"{job} has run {len(of_job)} times: {of_job}"
        late = [run for run in of_job if run.started > finished.get(job, run.started)]
        if late:
            return f"{job} was done, and has run again: {of_job}"
    return None


def delays_kept(facts):
    """A job with a delay does not run before its time."""
    for run in facts.runs:
        job = facts.added.get(run.job)
        if job and run.started < job.asked + job.delay * 1_000_000 - CLOCK_NS:
            return f"{run} runs before its time: {job}"
    return None


def backlog(facts):
    """The jobs of the backlog in the order in which they ran."""
    return [run.job for run in sorted(facts.runs_of("ranks"), key=lambda run: run.started)]


def order_kept(facts):
    """Jobs of one priority run in the order in which they were added."""
    for priority in {about.priority for about in facts.of_queue("ranks").values()}:
        jobs = [job for job in backlog(facts) if facts.added[job].priority == priority]
        if jobs != sorted(jobs):
            return f"not in order: {jobs}"
    return None


def priorities_kept(facts):
    """Jobs run in the order of their priorities."""
    found = [facts.added[job].priority for job in backlog(facts)]
    return f"priorities {found}" if found != sorted(found) else None


def limits_kept(facts):
    """Each window allows so many jobs."""
    starts = sorted(run.started for run in facts.runs_of("limited"))
    for number, started in enumerate(starts):
        windows = number // LIMIT
        if started < facts.limited_from + windows * LIMIT_MS * 1_000_000 - CLOCK_NS:
            return f"job {number} has begun in window {windows - 1} or before"
    return None


def repeats_kept(facts):
    """A job that is repeated runs often enough, and not before it is due."""
    for job, (asked, every) in facts.repeated.items():
        starts = sorted(run.started for run in facts.runs if run.job == job)
        if len(starts) < REPEATED:
            return f"{job} has run {len(starts)} times"
        disturbed = sum(run.is_disturbed for run in facts.runs if run.job == job)
        due = (starts[-1] - asked + CLOCK_NS) // (every * 1_000_000) + 1
        if len(starts) - disturbed - facts.again[job] > due + len(facts.away):
            return f"{job} has run {len(starts)} times, and was due {due} times"
    return None


def results_right(facts):
    """The result of each job that is done is there."""
    done = facts.finished(binding="forgets" in facts.capabilities).keys()
    if "at-least-once" in facts.capabilities and "forgets" not in facts.capabilities:
        done = {run.job for run in facts.runs}
    for job in facts.added.keys() & done:
        if facts.results.get(job) != job.upper():
            return f"{job} has the result {facts.results.get(job)}"
    return None


CHECKS = [
    (none_lost, None),
    (done_once, None),
    (delays_kept, "delays"),
    (order_kept, "order"),
    (priorities_kept, "priorities"),
    (limits_kept, "limits"),
    (repeats_kept, "repeats"),
    (results_right, "results"),
]


def spoil(facts):
    """Facts with one mistake each, and the check that must find it."""
    jobs = {job for job, about in facts.of_queue("jobs").items() if not about.delay}
    kept = next(run.job for run in facts.runs if not run.is_disturbed and run.job in jobs)

    def runs_of(spoiled, job):
        return [run for run in spoiled.runs if run.job == job]

    def lose(spoiled):
        for run in runs_of(spoiled, kept):
            run.finished = None

    def never_begun(spoiled):
        spoiled.may_be_lost = 0
        spoiled.runs = [run for run in spoiled.runs if run.job != kept]

    def unknown(spoiled):
        spoiled.runs.append(Run("stranger", "worker", 1, 2))

    def twice(spoiled):
        run = runs_of(spoiled, kept)[0]
        spoiled.runs.append(copy.copy(run))

    def late(spoiled):
        run = runs_of(spoiled, kept)[0]
        spoiled.runs.append(Run(kept, "worker", run.finished + 1, None, is_disturbed=True))

    def early(spoiled):
        job = next(job for job, about in spoiled.added.items() if about.delay > 50 and runs_of(spoiled, job))
        runs_of(spoiled, job)[0].started = spoiled.added[job].asked

    def other_priority(spoiled):
        first, *others = spoiled.runs_of("ranks")
        second = next(run for run in others if spoiled.added[run.job].priority != spoiled.added[first.job].priority)
        first.started, second.started = second.started, first.started

    def same_priority(spoiled):
        runs = spoiled.runs_of("ranks")
        priority = spoiled.added[runs[0].job].priority
        first, second = [run for run in runs if spoiled.added[run.job].priority == priority][:2]
        first.started, second.started = second.started, first.started

    def at_once(spoiled):
        for run in spoiled.runs_of("limited"):
            run.started = spoiled.limited_from

    def seldom(spoiled):
        spoiled.runs = [run for run in spoiled.runs if run.job not in spoiled.repeated]

    def often(spoiled):
        job = next(iter(spoiled.repeated))
        spoiled.runs += [Run(job, "worker", spoiled.repeated[job][0], 1) for _ in range(len(runs_of(spoiled, job)) + 1000)]

    mistakes = [
        (none_lost, None, lose),
        (none_lost, None, never_begun),
        (none_lost, None, unknown),
        (done_once, None, twice),
        (done_once, None, late),
        (delays_kept, "delays", early),
        (order_kept, "order", same_priority),
        (priorities_kept, "priorities", other_priority),
        (limits_kept, "limits", at_once),
        (repeats_kept, "repeats", seldom),
        (repeats_kept, "repeats", often),
        (results_right, "results", lambda spoiled: spoiled.results.pop(kept)),
        (results_right, "results", lambda spoiled: spoiled.results.update({kept: "ANOTHER"})),
    ]
    for check, capability, change in mistakes:
        if capability is None or capability in facts.capabilities:
            spoiled = copy.deepcopy(facts)
            change(spoiled)
            yield check, f"{check.__name__} of {change.__name__}", spoiled
