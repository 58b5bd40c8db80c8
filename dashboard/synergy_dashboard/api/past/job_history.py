"""All that has happened to one job, from the history and from the events that Kubernetes still has."""

from collections import Counter
from collections.abc import Iterable, Sequence

from synergy_dashboard.api.answers import JobPage
from synergy_dashboard.api.past.decisions import of_resize, of_run, of_wait
from synergy_dashboard.facts import JobFact, RunFact
from synergy_view.history import Happening, History
from synergy_view.rounds import Decided, what_of
from synergy_view.words import count, duration


def job_history(page: JobPage, job: JobFact | None) -> History:
    """The happenings in order, and their sums. `job` is None for one that the recorder does not know yet."""
    if job is None:
        return History(tuple(page.events), ())
    runs = {run.run for run in page.runs}
    told = [one for run in page.runs for one in of_run(job, run)]
    told += [of_resize(job, one) for one in page.resizes if one.run in runs]
    told += [of_wait(job, wait) for wait in page.waits]
    # events of what the history has too would say it twice
    events = [one for one in page.events if what_of(one.what) is None and (one.what != "FirstStart" or not page.runs)]
    found = [*_ends(job, events), *(_happening(one) for one in told), *_starts(page.runs), *events]
    return History(tuple(sorted(found, key=lambda one: (one.at_s, one.what))), tuple(_totals(page, job)))


def _happening(one: Decided) -> Happening:
    return Happening(one.at_s, "Granted" if one.what == "started" else one.reason, one.message)


def _starts(runs: Iterable[RunFact]) -> Iterable[Happening]:
    for run in runs:
        if run.started_s is not None:
            waited = duration(run.started_s - run.granted_s)
            yield Happening(run.started_s, "Started", f"run {run.run} trains, {waited} after it got its GPUs")
        if run.revoked_s is not None:
            yield Happening(run.revoked_s, "Revoked", f"run {run.run} is told to leave: {run.revoked_reason}")


def _ends(job: JobFact, events: Sequence[Happening]) -> Iterable[Happening]:
    """What the job's object says of its begin and end, where it is gone."""
    if any(one.what == "Created" for one in events):
        return
    yield Happening(job.created_s, "Created", "the TrainingJob was created")
    if job.finished_s is not None:
        yield Happening(job.finished_s, job.phase, "the job ended")
    if job.deleted_s is not None:
        yield Happening(job.deleted_s, "Deleted", "the TrainingJob was deleted")


def _totals(page: JobPage, job: JobFact) -> Iterable[str]:
    training = [run for run in page.runs if run.purpose == "Train"]
    failures = sum(run.outcome == "Failed" for run in training)
    yield ", ".join((count(len(training), "run"), count(job.preemptions, "preemption"), count(failures, "failure")))
    held = Counter[str]()
    for run in page.runs:
        if run.gpu_type:
            held[run.gpu_type] += round((page.now if run.ended_s is None else run.ended_s) - run.granted_s)
    for gpu_type, seconds in sorted(held.items()):
        yield f"{duration(seconds)} on {gpu_type}"
    waited = sum((page.now if wait.until_s is None else wait.until_s) - wait.since_s for wait in page.waits)
    yield f"{duration(waited)} in the queue"
    partners = sorted({name for run in page.runs for name in run.partners})
    if partners:
        yield f"shared GPUs with {', '.join(partners)}"
