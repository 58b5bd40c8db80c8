"""`simulate` and `compare`: what notebooks and the command line call."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from synergy_core.policies import Policy
from synergy_simulator.engine import simulation
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.stops import Stops
from synergy_simulator.grid import Case, label_of, run_all
from synergy_simulator.inputs.clusters import Cluster
from synergy_simulator.inputs.errors import SettingError
from synergy_simulator.inputs.profiles import ProfileTable
from synergy_simulator.own_policies import known_policy, source_of
from synergy_simulator.runners.processes import Processes
from synergy_simulator.runners.runner import Runner
from synergy_simulator.study.load import File, Trace, load
from synergy_simulator.study.result import Comparison, Result
from synergy_simulator.workloads.workload import Workload

Progress = Callable[[int], None]


def _ignore(_done: int) -> None: ...


def simulate(
    trace: Trace | Workload,
    profiles: File | ProfileTable | None = None,
    cluster: File | Cluster | None = None,
    policy: str | Policy = "fifo",
    mechanism: str = "tune",
    *,
    options: Options | None = None,
    progress: Progress = _ignore,
    stops: Stops | None = None,
    **settings: Any,
) -> Result:
    """Simulate a trace under one policy and mechanism, planned by the code that plans a real cluster.

    Args:
        trace: a file, jobs, rows or a DataFrame (`load`); or a workload, which has profiles and cluster already.
        profiles: a file, a table, or `built-in`; None: no job is sensitive to CPU and memory.
        cluster: a file or a cluster.
        policy: a name, the name of an entry point of `kube_synergy.policies`, `module:function`, or a function.
        mechanism: how CPU and memory are packed.
        options: all of how to simulate, in place of policy, mechanism and settings.
        progress: called with the number of jobs that are done.
        stops: moments at which it is called with the simulated cluster (`synergy_simulator.forecast.taken`).
        settings: fields of `Options` and of `PlanConfig`, for example `round_s=60.0` or `pack_limit=0.3`. Times are in
            seconds. Unless `record=False`, rounds are kept.

    Raises:
        InputError: bad input; one line that names file, line and field.
        SettingError: a setting does not go with the inputs.
        PolicyError: there is no such policy, or it does not return a ranking of the jobs.
        ValueError: there is no such setting or mechanism.
    """
    workload = _workload(trace, profiles, cluster)
    how = options or Options.of(policy=known_policy(policy), mechanism=mechanism, **{"record": True, **settings})
    known_policy(how.plan.policy)
    return Result(simulation.simulate(workload, how, progress, stops=stops))


def compare(
    trace: Trace | Workload,
    profiles: File | ProfileTable | None = None,
    cluster: File | Cluster | None = None,
    policies: Sequence[str | Policy] = ("fifo", "srtf", "las"),
    mechanisms: Sequence[str] = ("tune",),
    *,
    options: Sequence[Options] = (),
    draws: Sequence[Workload] = (),
    processes: int | None = None,
    runner: Runner | None = None,
    progress: Progress = _ignore,
    **settings: Any,
) -> Comparison:
    """Simulate a trace under each policy on each mechanism, as `simulate` does; raises what `simulate` raises.

    Args:
        trace: as for `simulate`, like profiles, cluster and settings.
        profiles: see `simulate`.
        cluster: see `simulate`.
        policies: as the policy of `simulate`. Where one is a function, all run in this process.
        mechanisms: how CPU and memory are packed.
        options: all of how to simulate, in place of policies, mechanisms and settings.
        draws: the workload with other seeds (`load`), for confidence intervals of the report's figures.
        processes: simulations at a time on this machine; None: one for each core.
        runner: where simulations run in place of this machine: `dask_cluster.connected`.
        progress: called with the number of simulations that are done.
        settings: see `simulate`.
    """
    workload = _workload(trace, profiles, cluster)
    grid = [replace(one, record=True) for one in options] or [
        Options.of(policy=known_policy(policy), mechanism=mechanism, record=True, **settings)
        for policy in policies
        for mechanism in mechanisms
    ]
    here = any(not isinstance(policy, str) for policy in policies)
    if here and runner is not None:
        raise SettingError("runner", "needs policies by name, such as module:function; other processes have no others")
    sources = [source_of(known_policy(one.plan.policy)) for one in grid]
    cases = [
        Case(label_of(one), drawn, one, source)
        for drawn in (workload, *draws)
        for one, source in zip(grid, sources, strict=True)
    ]
    found = tuple(run_all(cases, runner=runner or Processes(1 if here else processes), progress=progress))
    first, *more = (found[at : at + len(grid)] for at in range(0, len(found), len(grid)))
    return Comparison(first, tuple(more))


def _workload(
    trace: Trace | Workload, profiles: File | ProfileTable | None, cluster: File | Cluster | None
) -> Workload:
    if not isinstance(trace, Workload):
        return load(trace, profiles, cluster)
    for name, given in (("profiles", profiles), ("cluster", cluster)):
        if given is not None:
            raise SettingError(name, "are in the workload already; leave it out, or give a trace")
    return trace
