"""What comes of simulations: figures, data frames, charts."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import floor
from typing import Any

from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.usage import UsageMoment
from synergy_simulator.grid import label_of
from synergy_simulator.inputs.errors import SettingError
from synergy_simulator.inputs.profiles import GIB
from synergy_simulator.report.metrics import JobRow, Metrics, job_rows, metrics_of
from synergy_simulator.report.page import embedded, page
from synergy_simulator.report.summary import Summary, summarize


def frame(rows: Any, columns: list[str] | None = None) -> Any:
    """A pandas DataFrame. Raises ModuleNotFoundError that says what to install."""
    try:
        import pandas as pd  # noqa: PLC0415  a simulation without data frames does not need it
    except ModuleNotFoundError as error:
        problem = "data frames need pandas: install kube-synergy[notebook]"
        raise ModuleNotFoundError(problem, name="pandas") from error
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True, slots=True)
class Result:
    """One simulation."""

    outcome: Outcome

    @property
    def label(self) -> str:
        """The policy and the mechanism."""
        return label_of(self.outcome.options)

    @property
    def metrics(self) -> Metrics:
        """The figures, as `kube-synergy simulate --json` prints them. At least one measured job has ended."""
        return metrics_of(self.outcome)

    @property
    def rows(self) -> list[JobRow]:
        """The jobs that are done, by arrival."""
        return job_rows(self.outcome)

    @property
    def jobs(self) -> Any:
        """A DataFrame with a row for each job that is done: `--per-job`'s columns, `gpus`, `model` and `tenant`."""
        tasks = {run.task.name: run.task for run in self.outcome.runs}
        found = ((row, tasks[row.job_id]) for row in self.rows)
        more = [{**asdict(row), "gpus": task.gpus, "model": task.model, "tenant": task.tenant} for row, task in found]
        return frame(more)

    @property
    def rounds(self) -> Any:
        """A DataFrame with a row for each round.

        `round` counts from time 0, `start_s` is in seconds. `gpus`, `cpus`, `memory_gib` (in use) and `waiting` (jobs)
        are means over the round.

        Raises:
            SettingError: the simulation was not recorded.
        """
        if not self.outcome.options.record:
            raise SettingError("record", "is False, and rounds are not kept; simulate with record=True")
        columns = ["round", "start_s", "gpus", "cpus", "memory_gib", "waiting"]
        return frame(list(_rounds(self.outcome)), columns)

    @property
    def summary(self) -> Summary:
        """What a report shows; the simulation must be recorded."""
        return summarize(self.label, self.outcome)

    def report(self, title: str) -> str:
        """An HTML document with figures and charts."""
        return page(title, [[self.summary]])


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several simulations, side by side. A notebook shows it as a table and charts."""

    summaries: tuple[Summary, ...]
    more: tuple[tuple[Summary, ...], ...] = ()
    """The same simulations of further draws of the workload."""

    @property
    def draws(self) -> list[tuple[Summary, ...]]:
        """The simulations of each draw."""
        return [self.summaries, *self.more]

    @property
    def frame(self) -> Any:
        """A DataFrame with a row for each simulation of the first draw, by its label, and the figures as columns."""
        rows = [{"label": one.label, **one.metrics.document()} for one in self.summaries]
        return frame(rows).set_index("label")

    def report(self, title: str) -> str:
        """An HTML document with figures and charts."""
        return page(title, self.draws)

    def _repr_html_(self) -> str:
        return embedded(self.draws)


def _rounds(outcome: Outcome) -> Iterator[tuple[int, float, float, float, float, float]]:
    """Means over each round, from the series of moments between which nothing changes."""
    series, round_s, end = outcome.usage.series, outcome.options.round_s, outcome.usage.until
    index, sums, passed = -1, [0.0, 0.0, 0.0, 0.0], 0.0
    for moment, following in pairwise([*series, UsageMoment(end, 0, 0, 0, 0)]):
        values = (moment.gpus, moment.cpu_millis / 1000, moment.memory_bytes / GIB, moment.waiting)
        at = moment.at
        while at < following.at:
            now = floor(at / round_s)
            if now != index:
                if passed:
                    yield _mean(index, round_s, sums, passed)
                index, sums, passed = now, [0.0, 0.0, 0.0, 0.0], 0.0
            until = min(following.at, (now + 1) * round_s)
            if until <= at:  # rounding: the round's end is the moment itself
                until = min(following.at, (now + 2) * round_s)
            sums = [total + value * (until - at) for total, value in zip(sums, values, strict=True)]
            passed += until - at
            at = until
    if passed:
        yield _mean(index, round_s, sums, passed)


def _mean(
    index: int, round_s: float, sums: list[float], passed: float
) -> tuple[int, float, float, float, float, float]:
    gpus, cpus, memory, waiting = (total / passed for total in sums)
    return index, index * round_s, gpus, cpus, memory, waiting
