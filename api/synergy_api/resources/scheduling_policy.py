"""SchedulingPolicy: how the cluster is scheduled. The one named `default` is in force."""

from collections import Counter
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import ConfigDict, Field, model_validator

from synergy_api.base import ApiModel, Conditions
from synergy_api.parts.policy_options import AS_DESCRIBED, with_options
from synergy_api.parts.queues import PackRules, Preemption, Queues, ServiceHistory

TimeSharingPolicyName = Literal[
    "allox",
    "finish-time-fairness",
    "gandiva",
    "gavel-fifo",
    "hierarchical",
    "isolated",
    "makespan",
    "max-min-fairness",
    "max-min-fairness-water-filling",
    "max-throughput",
    "min-cost",
    "min-cost-slo",
    "proportional",
    "sjf",
]
"""Policies that say what part of the time each job spends on each GPU type."""
COST_POLICIES: Final = ("min-cost", "min-cost-slo")
"""Those of them that need the price of every GPU."""
PAIRS_POLICIES: Final = (
    "fifo",
    "finish-time-fairness",
    "gandiva",
    "gavel-fifo",
    "hierarchical",
    "makespan",
    "max-min-fairness",
    "max-min-fairness-water-filling",
    "max-throughput",
    "min-cost",
    "min-cost-slo",
)
"""Policies whose allocation matrix may have pairs of jobs on one GPU."""
PolicyName = Literal[
    "fifo", "srtf", "las", "ftf",
    "2d-las", "2d-gittins", "sf", "srsf", "yarn-cs", "best-effort",
    TimeSharingPolicyName,
]  # fmt: skip
MechanismName = Literal["proportional", "greedy", "tune", "opt", "drf", "drf-tune", "tetris", "tetris-tune"]
ColocationName = Literal["none", "thesis", "thesis-fractions", "auto", "gavel"]
EstimateName = Literal["none", "named", "all"]
DEFAULT_POLICY_NAME = "default"


class TenantShare(ApiModel):
    """A tenant's part of the cluster, and how it is allocated."""

    name: Annotated[
        str, Field(min_length=1, max_length=63, description="Name of a Tenant, or of a namespace that no Tenant has.")
    ]
    weight: Annotated[
        float, Field(gt=1e-6, le=1e6, description="Its part of the cluster, beside those of the others.")
    ] = 1.0
    policy: Annotated[
        Literal["fairness", "fifo"],
        Field(description="How its part is allocated to its jobs: by their weights, or in the order of arrival."),
    ] = "fairness"


@with_options("profiling")
class Profiling(ApiModel):
    """What profile runs may cost."""

    max_gpu_percent: int = AS_DESCRIBED
    max_cpu_multiple: Annotated[
        int, Field(ge=1, le=64, description="Highest CPU point, in multiples of the GPU-proportional share.")
    ] = 4
    max_points: Annotated[int, Field(ge=2, le=64, description="CPU points measured at the most, per GPU type.")] = 8
    threshold_percent: Annotated[
        int, Field(ge=1, le=90, description="Throughput gain below which the search looks at the lower half.")
    ] = 10
    runs_per_point: Annotated[
        int,
        Field(
            ge=1, le=10, description="Runs of each CPU point at the least; from 2 on the noise between runs is known."
        ),
    ] = 1
    max_repeats: Annotated[
        int,
        Field(
            ge=0, le=64, description="Further runs, per GPU type, of points that are noisy or contradict each other."
        ),
    ] = 4
    precision_percent: Annotated[
        int, Field(ge=1, le=90, description="Points are measured again until they are known this well (95 %).")
    ] = 10
    demand_tolerance_percent: int = AS_DESCRIBED
    check_memory_model: Annotated[
        bool,
        Field(description="Measure a job that reads through the data cache at one point with less memory as well."),
    ] = True
    max_gpu_types: Annotated[
        int | None,
        Field(
            ge=2,
            description="GPU types that a job is measured on at the most, different ones for different jobs; by "
            "default all. On the others plans go by estimates, where estimate says so.",
        ),
    ] = None
    max_sweep_points: Annotated[
        int, Field(ge=4, le=240, description="Points of a Sweep at the most, over all GPU types of a job.")
    ] = 64
    reference_pairs: Annotated[
        int,
        Field(
            ge=0,
            le=16,
            description="Reference jobs (sharing.reference) beside which a new job that may share is measured at the "
            "most, for each GPU type with shared GPUs; 0 for none. A pair takes one GPU, of those that maxGpuPercent "
            "leaves to profile runs. Fewer pairs are run once further ones would tell little.",
        ),
    ] = 0
    reference_pair_seconds: Annotated[
        int, Field(ge=20, le=1800, description="Seconds that each job of a pair trains after its warm-up steps.")
    ] = 120
    reference_wait_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=86400,
            description="Seconds that a new job waits for a shared GPU to be measured beside references on. Then it "
            "is queued without.",
        ),
    ] = 600


@with_options("priorities")
class Priorities(ApiModel):
    """How the PriorityClasses of jobs count."""

    across: bool = AS_DESCRIBED


_RETRY_RULES: list[Any] = [
    {
        "rule": "self.withinSeconds >= (self.jobs + 1) * self.retrySeconds",
        "message": "withinSeconds must be at least (jobs + 1) * retrySeconds, or a node is trusted again too early",
        "fieldPath": ".withinSeconds",
    }
]


class FailingNodes(ApiModel):
    """When plans avoid a node on which several jobs have failed. A job that fails on several nodes counts for none."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _RETRY_RULES})

    jobs: Annotated[
        int, Field(ge=0, le=64, description="Jobs that must have failed on the node; 0 avoids no node.")
    ] = 3
    within_seconds: Annotated[int, Field(ge=60, le=2_592_000, description="Seconds for which a failure counts.")] = (
        21_600
    )
    retry_seconds: Annotated[
        int, Field(ge=10, le=604_800, description="Seconds after its last failure until one job tries the node.")
    ] = 1800
    probe_seconds: Annotated[
        int, Field(ge=1, le=604_800, description="Seconds that this job must run until the node takes others.")
    ] = 600
    max_percent: Annotated[
        int,
        Field(
            ge=0,
            le=100,
            description="Nodes of a GPU type that are avoided at once, in percent. One of two or more always may be, "
            "and never all.",
        ),
    ] = 10

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        if self.within_seconds < (self.jobs + 1) * self.retry_seconds:
            raise ValueError(str(_RETRY_RULES[0]["message"]))
        return self


@with_options("autoscaling")
class Autoscaling(ApiModel):
    """What nodes that are asked for may cost."""

    max_price_per_hour: float | None = AS_DESCRIBED


_TIME_SHARING: Final[tuple[str, ...]] = get_args(TimeSharingPolicyName)
_AGNOSTIC: Final = f"agnostic needs one of the policies {', '.join(_TIME_SHARING)}"
_PLACEMENTS: Final = f"placementSensitive needs one of the policies {', '.join(_TIME_SHARING)}"
_PAIRS: Final = f"colocation gavel needs one of the policies {', '.join(PAIRS_POLICIES)}"
_SPEC_RULES: list[Any] = [
    {
        "rule": f"!self.agnostic || self.policy in [{', '.join(repr(name) for name in _TIME_SHARING)}]",
        "message": _AGNOSTIC,
        "fieldPath": ".agnostic",
    },
    {
        "rule": f"!self.placementSensitive || self.policy in [{', '.join(repr(name) for name in _TIME_SHARING)}]",
        "message": _PLACEMENTS,
        "fieldPath": ".placementSensitive",
    },
    {
        "rule": f"self.colocation != 'gavel' || self.policy in [{', '.join(repr(name) for name in PAIRS_POLICIES)}]",
        "message": _PAIRS,
        "fieldPath": ".colocation",
    },
]


@with_options()
class SchedulingPolicySpec(ApiModel):
    """Who runs, how they are packed, for how long."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _SPEC_RULES})

    policy: PolicyName = AS_DESCRIBED
    agnostic: bool = AS_DESCRIBED
    placement_sensitive: bool = AS_DESCRIBED
    tenants: Annotated[
        list[TenantShare],
        Field(
            max_length=256,
            description="Tenants for the policy hierarchical; one that is not named here has weight 1 and fairness.",
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = []
    mechanism: MechanismName = AS_DESCRIBED
    estimate: EstimateName = AS_DESCRIBED
    colocation: ColocationName = AS_DESCRIBED
    round_seconds: Annotated[
        int, Field(ge=5, le=86400, description="Length of a round: plans change which jobs run at its end.")
    ] = 300
    queues: Queues = Queues()
    placement: PackRules = PackRules()
    preemption: Preemption = Preemption()
    priorities: Priorities = Priorities()
    profiling: Profiling = Profiling()
    failing_nodes: FailingNodes = FailingNodes()
    autoscaling: Autoscaling = Autoscaling()

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        """What the API server checks by rules, for specs that come without it."""
        if self.agnostic and self.policy not in _TIME_SHARING:
            raise ValueError(_AGNOSTIC)
        if self.placement_sensitive and self.policy not in _TIME_SHARING:
            raise ValueError(_PLACEMENTS)
        if self.colocation == "gavel" and self.policy not in PAIRS_POLICIES:
            raise ValueError(_PAIRS)
        for name, times in Counter(tenant.name for tenant in self.tenants).items():
            if times > 1:
                raise ValueError(f"tenants name {name} {times} times; name each once")
        return self


StandIn = Literal["CutShort", "Last", "Isolated"]


class InForce(ApiModel):
    """What plans follow now: the spec, or the last valid one where the spec is not."""

    policy: Annotated[PolicyName, Field(description="The order in which jobs should run.")]
    agnostic: Annotated[bool | None, Field(description="Whether plans see no difference between GPU types.")] = None
    placement_sensitive: Annotated[
        bool | None, Field(description="Whether plans see what jobs keep of their throughput on many nodes.")
    ] = None
    mechanism: Annotated[MechanismName, Field(description="How CPU and memory are packed.")]
    round_seconds: Annotated[int, Field(ge=1, description="Length of a round.")]
    round: Annotated[
        int | None,
        Field(
            ge=0,
            description="The newest round that is planned and written, counted from 1970 in rounds of this length.",
        ),
    ] = None
    allocation: Annotated[
        StandIn | None,
        Field(
            description="Set while the policy finds no new optimal allocation in time: the newest plan follows the "
            "last one, with an isolated share for jobs that came since (Last; CutShort where it is the best that was "
            "found when time ran out), or gives each job its isolated share (Isolated)."
        ),
    ] = None


class SchedulingPolicyStatus(ApiModel):
    """Whether the policy is in force. Owned by the extender."""

    in_force: InForce | None = None
    history: ServiceHistory | None = None
    conditions: Conditions = []
