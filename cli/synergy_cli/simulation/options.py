"""Options that the simulator's commands have in common, and what they make of them."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click

from synergy_cli.errors import BadInputError
from synergy_cli.numbers import Seconds, Within
from synergy_cli.queue_options import queue_options, queues_of
from synergy_cli.sharing_options import mode_of, predictors_of
from synergy_cli.simulation.checks import check_window
from synergy_core.config import PlanConfig
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model import Tenant
from synergy_core.policies import POLICIES
from synergy_core.policies.time_shares import WITH_PAIRS
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.selection import SHARES_TIME
from synergy_simulator.engine.sharing import BUILT_IN, read_usages
from synergy_simulator.inputs.clusters import read_cluster, shared
from synergy_simulator.inputs.errors import InputError
from synergy_simulator.inputs.profiles import ProfileTable, read_profiles
from synergy_simulator.inputs.traces import read_trace
from synergy_simulator.workloads.generator import Split, parse_split, with_models
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Workload, build_workload, with_usages


class JobsPerHour(click.FloatRange):
    """A load that gives arrivals that a simulation can take."""

    name = "load"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or click's error that names the option."""
        number = float(super().convert(value, param, ctx))
        if not _LEAST_LOAD <= number <= _MOST_LOAD:
            self.fail(f"{value} is not a load from {_LEAST_LOAD:g} to {_MOST_LOAD:g} jobs per hour.", param, ctx)
        return number


_LEAST_LOAD, _MOST_LOAD = 1e-3, 1e6


def as_window(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """`A:B`, jobs A to B - 1."""
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise click.BadParameter(f"must be two counts A:B with A below B, is {text!r}")
    return int(first), int(last)


def as_split(_context: click.Context, _option: click.Parameter, text: str) -> Split:
    """Parts of image, language and speech models."""
    try:
        return parse_split(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def as_tenants(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> tuple[Tenant, ...]:
    """`NAME=WEIGHT`, or `NAME=WEIGHT:fifo`."""
    tenants = tuple(map(_tenant, texts))
    for name, times in Counter(tenant.name for tenant in tenants).items():
        if times > 1:
            raise click.BadParameter(f"{name} is there {times} times; give each tenant once")
    return tenants


def _tenant(text: str) -> Tenant:
    name, _, rest = text.rpartition("=")
    weight, colon, policy = rest.partition(":")
    try:
        number = float(weight)
    except ValueError:
        number = 0.0
    if not name or not 0.0 < number < _MOST_WEIGHT or (colon and policy not in _WITHIN):
        raise click.BadParameter(
            f"must be NAME=WEIGHT, with :fairness or :fifo behind it, the weight above 0; is {text!r}"
        )
    return Tenant(name, number, _WITHIN.get(policy, "fairness"))


_WITHIN: dict[str, Literal["fairness", "fifo"]] = {"fairness": "fairness", "fifo": "fifo"}
_MOST_WEIGHT = 1e6
_PLANNER = PlanConfig()


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What is simulated."""
    for option in reversed(
        (
            click.option("--trace", required=True, metavar="T.csv", help="Jobs: the native table, or a paper's."),
            click.option(
                "--profiles", metavar="P.json", help="Matrices, or `built-in`. Without, no job minds CPU and memory."
            ),
            click.option(
                "--unconsolidated",
                is_flag=True,
                help="Jobs on more nodes than they must have are as slow as the profiles say (TYPE_unconsolidated).",
            ),
            click.option("--cluster", required=True, metavar="C.yaml", help="Pools of nodes."),
            click.option(
                "--usage",
                metavar="U.csv",
                help="What models do to a GPU (model,gpu_util,gmem_util,gmem), or `built-in`: those jobs may share.",
            ),
            click.option("--seed", default=0, show_default=True, help="Seed of what is drawn."),
            click.option(
                "--split",
                callback=as_split,
                metavar="I,L,S",
                default="20,70,10",
                show_default=True,
                help="Image, language, speech: models drawn for jobs whose trace tells none.",
            ),
            click.option(
                "--jobs",
                "part",
                callback=as_window,
                metavar="A:B",
                help="Simulate this window of the trace's jobs only.",
            ),
        )
    ):
        command = option(command)
    return command


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How it is simulated."""
    seconds = Seconds(min=0)
    for option in reversed(
        (
            click.option("--round", "round_s", default=300.0, show_default=True, type=Seconds(min=0, min_open=True)),
            click.option(
                "--measure",
                callback=as_window,
                metavar="A:B",
                help="Window of jobs, by arrival, that the figures are about.",
            ),
            click.option("--until-measured-done", is_flag=True, help="End when the measured jobs are done."),
            click.option("--start-overhead", default=0.0, type=seconds, help="Seconds before a job's first step."),
            click.option(
                "--preemption-overhead", default=0.0, type=seconds, help="Seconds lost each time a job begins again."
            ),
            click.option(
                "--storage-bandwidth",
                type=Within(min=1),
                metavar="BYTES/S",
                help="Each preemption also writes and reads the job's checkpoint_bytes at this speed.",
            ),
            click.option(
                "--link-bandwidth",
                type=Within(min=1),
                metavar="BYTES/S",
                help="A node's link: on many nodes jobs lose what all-reduce of their model_bytes takes over it.",
            ),
            click.option(
                "--minimum-run",
                default=_PLANNER.minimum_run_s,
                show_default=True,
                type=seconds,
                help="Nobody displaces a job whose run is younger than this.",
            ),
            click.option(
                "--preemption-payback",
                default=_PLANNER.preemption_payback,
                show_default=True,
                type=Within(min=0),
                metavar="X",
                help="Nor one whose run has not lasted X times as long as its preemption costs.",
            ),
            click.option(
                "--pack-limit",
                type=Within(min=0, max=1),
                metavar="SKEW",
                help="0 to 1: jobs with a larger skew wait for the fewest nodes, others take what is left over.",
            ),
            click.option(
                "--profiling-overhead", default=0.0, type=seconds, help="Seconds of each job's profile run on its GPUs."
            ),
            click.option(
                "--measured-types",
                type=click.IntRange(1),
                metavar="N",
                help="Plans know a model on N GPU types only, estimate the others, and learn from runs there.",
            ),
            click.option("--no-fill", is_flag=True, help="GPUs that fall free stay idle until the round ends."),
            click.option(
                "--sharing",
                is_flag=True,
                help="Let two jobs share a GPU of any pool by the policy's own pairs: --colocation gavel.",
            ),
            click.option(
                "--tenant",
                "tenants",
                multiple=True,
                callback=as_tenants,
                metavar="NAME=WEIGHT[:POLICY]",
                help="hierarchical: a tenant's weight, and fairness or fifo among its jobs; once for each tenant.",
            ),
            click.option("--agnostic", is_flag=True, help="Policies do not see that GPU types differ in speed."),
            click.option(
                "--placement-sensitive",
                is_flag=True,
                help="Policies over GPU types see what a job keeps of its speed on many nodes.",
            ),
        )
    ):
        command = option(command)
    return queue_options(command)


@contextmanager
def bad_input() -> Iterator[None]:
    """Turn what the simulator says of its input into the command line's one line."""
    try:
        yield
    except InputError as error:
        raise BadInputError(str(error)) from error


def workload_of(
    *,
    trace: str,
    profiles: str | None,
    unconsolidated: bool,
    cluster: str,
    usage: str | None,
    seed: int,
    split: Split,
    part: tuple[int, int] | None,
    sharing: bool,
) -> Workload:
    """Read and join the inputs."""
    with bad_input():
        pools = shared(read_cluster(Path(cluster))) if sharing else read_cluster(Path(cluster))
        table = None if profiles is None else profiles_of(profiles)
        jobs = read_trace(Path(trace))
        if part is not None:
            check_window("--jobs", part, len(jobs))
            jobs = jobs[slice(*part)]
        if table is not None:
            jobs = with_models(jobs, split, table.models, seed=seed)
        if unconsolidated and (table is None or not table.spread):
            raise BadInputError("--unconsolidated: --profiles has no speeds of types that end in _unconsolidated")
        workload = build_workload(jobs, table, pools, unconsolidated=unconsolidated)
        if usage is None:
            return workload
        return with_usages(workload, BUILT_IN if usage == "built-in" else read_usages(Path(usage)))


def profiles_of(name: str) -> ProfileTable:
    """The built-in table, or a file's."""
    return built_in_profiles() if name == "built-in" else read_profiles(Path(name))


def options_of(
    *,
    policy: str,
    mechanism: str,
    jobs: int,
    round_s: float,
    measure: tuple[int, int] | None,
    until_measured_done: bool,
    start_overhead: float,
    preemption_overhead: float,
    storage_bandwidth: float | None,
    link_bandwidth: float | None,
    minimum_run: float,
    preemption_payback: float,
    pack_limit: float | None,
    profiling_overhead: float,
    measured_types: int | None,
    no_fill: bool,
    sharing: bool,
    agnostic: bool,
    placement_sensitive: bool,
    tenants: tuple[Tenant, ...],
    queue_thresholds: str,
    promote_knob: float | None,
    service_distribution: str | None,
    colocation: str,
    colocation_model: tuple[str, ...],
    record: bool = False,
    many: bool = False,
) -> Options:
    """Check and gather how to simulate. `many`: policy and mechanism are some of those that options list."""
    policies, mechanisms = ("--policies", "--mechanisms") if many else ("--policy", "--mechanism")
    for option, value, known in ((policies, policy, POLICIES), (mechanisms, mechanism, MECHANISMS)):
        if value not in known:
            raise BadInputError(f"{option}: {value!r} is not there; choose one of {', '.join(sorted(known))}")
    mode = mode_of(colocation)
    if sharing and mode != "none":
        raise BadInputError(f"--sharing: means --colocation gavel, and --colocation is {mode}; give one of them")
    mode = "gavel" if sharing else mode
    without_pairs = mode == "gavel" and policy not in WITH_PAIRS
    for option, asked in (
        ("--sharing", sharing and without_pairs),
        ("--colocation", without_pairs),
        ("--placement-sensitive", placement_sensitive and policy not in SHARES_TIME),
        ("--agnostic", agnostic and mode != "gavel" and policy not in SHARES_TIME),
    ):
        if asked:
            other = f"choose another policy, for example {policies} max-min-fairness"
            raise BadInputError(f"{option}: {policy} has no such variant; leave it out, or {other}")
    if measured_types is not None and mode != "none":
        raise BadInputError("--measured-types: jobs that share a GPU need all their matrices; leave one of the two out")
    if tenants and policy != "hierarchical":
        raise BadInputError(f"--tenant: {policy} knows no tenants; leave it out or use --policy hierarchical")
    if measure is not None:
        check_window("--measure", measure, jobs)
    if until_measured_done and measure is None:
        raise BadInputError("--until-measured-done: needs --measure A:B, which says whose end to wait for")
    return Options(
        policy=policy,
        mechanism=mechanism,
        aware=not agnostic,
        placement_sensitive=placement_sensitive,
        tenants=tenants,
        queues=queues_of(
            queue_thresholds=queue_thresholds, promote_knob=promote_knob, service_distribution=service_distribution
        ),
        round_s=round_s,
        measure=measure,
        until_measured_done=until_measured_done,
        start_overhead_s=start_overhead,
        preemption_overhead_s=preemption_overhead,
        storage_bytes_per_s=storage_bandwidth,
        link_bytes_per_s=link_bandwidth,
        minimum_run_s=minimum_run,
        preemption_payback=preemption_payback,
        pack_limit=pack_limit,
        profiling_s=profiling_overhead,
        measured_types=measured_types,
        fill=not no_fill,
        colocation=mode,
        predictors=predictors_of(colocation_model, mode),
        record=record,
    )
