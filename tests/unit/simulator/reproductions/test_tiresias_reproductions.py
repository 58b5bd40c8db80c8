"""What the reproductions of Tiresias run."""

from collections.abc import Callable, Sequence

import pytest

from synergy_core.policies.discretised.learned_thresholds import learned_thresholds
from synergy_simulator.grid import Case
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.reproductions.tiresias.common import production
from synergy_simulator.reproductions.tiresias.fig10 import fig10
from synergy_simulator.reproductions.tiresias.sensitivity import fig14
from synergy_simulator.reproductions.tiresias.tables import LEARNED, table5


class _CaughtError(Exception):
    """Instead of results."""


def _inputs(seed: int, cases: list[Case]) -> Inputs:
    def run(given: Sequence[Case]) -> list[Summary]:
        cases.extend(given)
        raise _CaughtError

    return Inputs.of(None, quick=True, seed=seed, run=run)


def _cases(figure: Callable[[Inputs], Findings], seed: int) -> dict[str, Case]:
    cases: list[Case] = []
    with pytest.raises(_CaughtError):
        figure(_inputs(seed, cases))
    return {one.label: one for one in cases}


def test_fifo_consolidates_every_job_as_in_table_2_of_the_paper() -> None:
    limits = {label: one.options.plan.pack_limit for label, one in _cases(fig10, 0).items()}
    assert limits.pop("yarn-cs") == 0.0
    assert set(limits.values()) == {0.4}


@pytest.mark.parametrize(("figure", "label"), [(table5, LEARNED), (fig14, "K 2, learned")])
def test_thresholds_are_learned_from_another_trace_than_the_one_they_are_tested_on(
    figure: Callable[[Inputs], Findings], label: str
) -> None:
    learned = _cases(figure, 3)[label].options.plan.queues.thresholds_gpu_s
    of = {seed: learned_thresholds(_services(seed), 2) for seed in (3, 4)}
    assert learned == of[4] != of[3]


def _services(seed: int) -> list[float]:
    return [task.gpus * task.alone_s for task in production(_inputs(seed, [])).tasks]
