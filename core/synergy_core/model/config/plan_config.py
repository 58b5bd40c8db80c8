"""The configuration of a plan, each field with its policy option."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from synergy_core.model.config.policy_option import CallersOption, Command, Flag, PolicyOption, SpecField, described
from synergy_core.model.config.priority_queues import PriorityQueues
from synergy_core.model.measurement import Predictor

Mode = Literal["round", "fill"]
ColocationMode = Literal["none", "thesis", "thesis-fractions", "auto", "gavel"]
THESIS_MODES: frozenset[ColocationMode] = frozenset({"thesis", "thesis-fractions"})
"""The modes that run the co-location thesis' algorithm 2; they differ in the form of delta (`colocation.delta`)."""
EstimateMode = Literal["none", "named", "all"]
SIMULATED: Final[frozenset[Command]] = frozenset({"simulate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanConfig:
    """How to plan. `round` decides everything anew; `fill` only gives free capacity to waiting jobs."""

    policy: Annotated[
        str,
        PolicyOption(
            flag=Flag(
                name="--policy",
                help="The order in which jobs should run: {choices}; or a function of your own, module:function.",
            ),
            spec=SpecField(name="policy", description="The order in which jobs should run."),
        ),
    ] = "2d-las"
    mechanism: Annotated[
        str,
        PolicyOption(
            flag=Flag(name="--mechanism", help="How CPU and memory are allocated: {choices}."),
            spec=SpecField(name="mechanism", description="How CPU and memory are packed."),
        ),
    ] = "tune"
    mode: Annotated[Mode, CallersOption("the caller knows if a round begins")] = "round"
    profile_gpu_percent: Annotated[
        int,
        PolicyOption(
            spec=SpecField(
                name="profiling.max_gpu_percent",
                description="Profile runs hold at most this share of the cluster's GPUs (at least one).",
                at_least=1,
                at_most=100,
            ),
            unset="the jobs of traces and snapshots are measured already",
        ),
    ] = 25
    """All profile runs together hold at most this share of the cluster's GPUs; one may always run."""
    demand_tolerance: Annotated[
        float,
        PolicyOption(
            spec=SpecField(
                name="profiling.demand_tolerance_percent",
                description="The demand vector is the least that is at most this much slower than the best.",
                percent=True,
                at_least=0,
                at_most=50,
            ),
            unset="the demands of traces and snapshots are compared at the usual tolerance",
        ),
    ] = 0.05
    """A job counts as saturated at this much below its best speed."""
    queues: PriorityQueues = field(default_factory=PriorityQueues)
    pack_limit: Annotated[
        float | None,
        PolicyOption(
            flag=Flag(
                name="--pack-limit",
                metavar="SKEW",
                help="0 to 1: jobs with a larger skew wait for the fewest nodes, others take GPUs that are left over.",
                least=0,
                most=1,
                commands=SIMULATED,
            ),
            spec=SpecField(
                name="placement.pack_limit_percent",
                description="PACKLIMIT: a job whose largest tensor is more than this part of its model waits for the "
                "fewest nodes that could hold it, others take GPUs that are left over. By default all take the fewest "
                "nodes that have the room.",
                percent=True,
                at_least=0,
                at_most=100,
            ),
        ),
    ] = None
    """PACKLIMIT: jobs with a larger skew are packed on the fewest nodes, others spread (Tiresias, section 3.3.2); null:
    all take the fewest nodes that have the room."""
    link_bytes_per_s: Annotated[
        float | None,
        PolicyOption(
            flag=Flag(
                name="--link-bandwidth",
                metavar="BYTES/S",
                help="Bandwidth of a node's link: spread jobs lose what all-reduce of their model_bytes takes over it.",
                least=1,
                commands=SIMULATED,
            ),
            spec=SpecField(
                name="placement.link_bytes_per_second",
                description="Measured bandwidth of a node's link. For jobs that report their model's bytes, the cost "
                "of all-reduce over it then decides, instead of the limit.",
                above=0,
            ),
        ),
    ] = None
    """Measured bandwidth of a node's link. For jobs with known `model_bytes` the cost of all-reduce over it decides."""
    minimum_run_s: Annotated[
        float,
        PolicyOption(
            flag=Flag(
                name="--minimum-run",
                help="Protect runs younger than this from preemption.",
                least=0,
                seconds=True,
                commands=SIMULATED,
            ),
            spec=SpecField(
                name="preemption.minimum_run_seconds",
                description="Protect runs younger than this from preemption.",
                whole=True,
                at_least=0,
                at_most=604800,
            ),
        ),
    ] = 0.0
    """Protect runs younger than this from preemption."""
    preemption_payback: Annotated[
        float,
        PolicyOption(
            flag=Flag(
                name="--preemption-payback",
                metavar="X",
                help="Protect a run until it has lasted X times its preemption cost.",
                least=0,
                commands=SIMULATED,
            ),
            spec=SpecField(
                name="preemption.payback",
                description="Protect a run until it has lasted so many times its preemption cost: the measured "
                "seconds of its last save and of its last start.",
                at_least=0,
                at_most=1e6,
            ),
        ),
    ] = 10.0
    """Protect a run until it has lasted so many times its preemption cost; 0: not at all."""
    preemptions_per_hour: Annotated[
        int | None,
        PolicyOption(
            spec=SpecField(
                name="preemption.max_per_hour",
                description="Preemption budget: protect a job that was preempted so many times within the last hour. "
                "By default there is no budget.",
                at_least=1,
                at_most=12,
            ),
            unset="traces and snapshots of other clusters do not say when jobs were preempted",
        ),
    ] = None
    """Preemption budget of each job (`selection.preemption.budgets`); null: none."""
    priorities_across: Annotated[
        bool,
        PolicyOption(
            flag=Flag(
                name="--priorities-across",
                help="A higher class goes before the jobs of all tenants, not only of its own.",
            ),
            spec=SpecField(
                name="priorities.across",
                description="Whether a higher PriorityClass goes before the jobs of all tenants. By default it goes "
                "before those of its own tenant only. Guarantees of other tenants stay stronger.",
            ),
        ),
    ] = False
    """Classes count across tenants (`policies.classes`)."""
    colocation: Annotated[
        ColocationMode,
        PolicyOption(
            flag=Flag(name="--colocation", help="Which jobs share a GPU: {choices}."),
            spec=SpecField(
                name="colocation",
                description="Which jobs share a GPU of a GPUPool with sharing, if they allow it. none: no jobs. "
                "thesis: by algorithm 2 of the co-location thesis. thesis-fractions: the same, with all iterations "
                "taken as equally long. auto: where the predicted speeds gain and no job falls below its fair share. "
                "gavel: in pairs, as the policy's allocation matrix says.",
            ),
        ),
    ] = "none"
    """Which jobs share a GPU (`colocation.pairing`; of `gavel`, `colocation.combinations`)."""
    predictors: Annotated[
        Mapping[str, Predictor],
        PolicyOption(
            flag=Flag(
                name="--colocation-model",
                metavar="MODEL.json",
                help="Output of `colocation fit`, one for each GPU type. Without one, a generic model is used.",
            ),
            unset="a cluster learns from what it measures",
        ),
    ] = field(default_factory=dict)
    """What sharing costs, by GPU type; for types that are missing, `colocation.predictors.generic`."""
    sharing_retry_s: Annotated[float, CallersOption("a constant of the planner, which tests set shorter")] = 3600.0
    """A measurement of co-located jobs replaces the prediction for so long."""
    estimate: Annotated[
        EstimateMode,
        PolicyOption(
            flag=Flag(
                name="--estimate",
                help="GPU types for which a job without a matrix gets its measured or an estimated speed: those that "
                "its gpu_types names, all that it may use, or none.",
                commands=frozenset({"plan"}),
            ),
            spec=SpecField(
                name="estimate",
                description="On which GPU types a job without a matrix gets the throughput that was measured while it "
                "ran there, or an estimate from other jobs: those that its gpuTypes names, all that it may use, or "
                "none.",
            ),
        ),
    ] = "named"
    """On which GPU types a job without a matrix gets the speed that was measured there, or an estimate from other jobs
    (Gavel, section 3.3): `named`, those that its `gpu_types` names; `all` that it may use; `none`."""
    aware: Annotated[
        bool,
        PolicyOption(
            flag=Flag(name="--agnostic", help="Policies ignore that GPU types differ in speed."),
            spec=SpecField(
                name="agnostic",
                description="Plan as if each job were equally fast on all GPU types; for policies over several types.",
            ),
            negated=True,
        ),
    ] = True
    """Policies over several GPU types see that a job's speed differs between them (Gavel)."""
    placement_sensitive: Annotated[
        bool,
        PolicyOption(
            flag=Flag(
                name="--placement-sensitive",
                help="Policies over GPU types see what a job keeps of its speed when it is spread.",
            ),
            spec=SpecField(
                name="placement_sensitive",
                description="Plan with the part of their throughput that jobs of several GPUs keep when spread: as "
                "measured, or computed from placement.linkBytesPerSecond. For the same policies as agnostic.",
            ),
        ),
    ] = False
    """They also see that it differs between packed and spread (Gavel, section 3.1)."""
    max_price_per_hour: Annotated[
        float | None,
        PolicyOption(
            flag=Flag(
                name="--max-price-per-hour",
                metavar="PRICE",
                help="No node is asked for with which all GPUs together would cost more.",
                least=0,
                most=1e12,
                commands=frozenset({"plan"}),
            ),
            spec=SpecField(
                name="autoscaling.max_price_per_hour",
                description="No node is asked for with which all GPUs of the cluster together would cost more for an "
                "hour, by the pricePerHour of their GPUPools. By default there is no such bound.",
                at_least=0,
                at_most=1e12,
            ),
        ),
    ] = None
    """No node is asked for with which all GPUs together would cost more for an hour; null: whatever they cost."""
    explain: Annotated[bool, CallersOption("the caller knows if the reasons are read")] = True
    """False leaves `waiting` empty, and does not look at jobs below the point of the queue where nothing is left. The
    plan is the same, and found faster."""


OPTIONS: Final = described(PlanConfig)
"""Every policy option, described once."""
