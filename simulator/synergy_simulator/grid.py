"""Several simulations, wherever they run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.own_policies import known_policy, same_source
from synergy_simulator.report.summary import Summary, summarize
from synergy_simulator.runners.processes import Processes
from synergy_simulator.runners.runner import Runner
from synergy_simulator.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class Case:
    """A simulation to be made."""

    label: str
    workload: Workload
    options: Options
    source: str = ""
    """Of a policy that is not the project's own (`own_policies.source_of`)."""


def label_of(options: Options) -> str:
    """The name of a run that has nothing else to distinguish it."""
    config = options.plan
    sharing = "" if config.colocation == "none" else f", {config.colocation}"
    return f"{config.policy} on {config.mechanism}{sharing}"


def run_one(case: Case) -> Summary:
    """Simulate a case, in whichever process."""
    same_source(known_policy(case.options.plan.policy), case.source)
    return summarize(case.label, simulate(case.workload, case.options))


def run_all(
    cases: Sequence[Case],
    *,
    runner: Runner | None = None,
    progress: Callable[[int], None] = lambda _done: None,
) -> list[Summary]:
    """Simulate each case, by default on all cores of this machine; the answers are in their order.

    `progress` is called with the number of those that are done.
    """
    done = 0

    def tell(_index: int, _found: Summary) -> None:
        nonlocal done
        done += 1
        progress(done)

    return (runner or Processes()).run(run_one, cases, tell)
