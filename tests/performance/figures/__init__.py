"""What can be measured: a figure by its name, and the function that makes it from a load."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from performance.case import Case

PROCESSOR = {
    "plan-round": "planner:plan_round",
    "plan-one-more": "planner:plan_one_more",
    "plan-growth": "planner:plan_growth",
    "solve-max-min": "solver:max_min",
    "filter-decode": "verbs:filter_decode",
    "read-jobs": "extender:read_jobs",
    "build-snapshot": "extender:snapshot",
    "pass-again": "extender:pass_again",
    "reconcile-new-job": "operator:new_job",
    "reconcile-running-job": "operator:running_job",
    "span-off": "service:span_off",
}
"""Processor time over that of a reference."""
MEMORY = {"job-memory": "memory:jobs", "pod-memory": "memory:pods"}
"""Bytes that objects take in a component, over their bytes on the wire."""
PROCESSES = {
    "bound-per-second": "processes:bound_per_second",
    "bound-per-second-bare": "processes:bound_per_second_bare",
    "reconciled-once": "processes:reconciled_once",
    "filter-p99": "processes:filter_p99",
    "start": "processes:start",
    "operator-memory": "processes:operator_memory",
    "lost-or-doubled": "processes:lost_or_doubled",
}
"""Of the product's own processes under load, from the report of `bench e2e`."""
NAMES = (*PROCESSOR, *MEMORY, *PROCESSES)


def case_of(name: str, load: Mapping[str, int]) -> Case:
    """What is measured by turns. Raises TypeError if the load does not fit the figure."""
    made = _function(PROCESSOR[name])(**load)
    assert isinstance(made, Case)
    return made


def memory_of(name: str, load: Mapping[str, int]) -> float:
    """A ratio of bytes. Raises TypeError if the load does not fit the figure."""
    return float(_function(MEMORY[name])(**load))


def of_processes(name: str, report: Mapping[str, Any]) -> float:
    """A ratio from the report of `bench e2e`."""
    return float(_function(PROCESSES[name])(report))


def _function(place: str) -> Callable[..., Any]:
    """Loaded when it is measured: an older version of the product may lack what another figure needs."""
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), name)
    return found
