"""SchedulingPolicy: how the cluster is scheduled. The one named `default` is in force."""

from typing import Annotated, Literal

from pydantic import Field

from synergy_api.base import ApiModel, Conditions
from synergy_api.queues import Preemption, Queues, ServiceHistory

PolicyName = Literal[
    "fifo", "srtf", "las", "ftf",
    "2d-las", "2d-gittins", "sf", "srsf", "yarn-cs", "best-effort",
]  # fmt: skip
MechanismName = Literal["proportional", "greedy", "tune", "opt", "drf", "drf-tune", "tetris", "tetris-tune"]
DEFAULT_POLICY_NAME = "default"


class Profiling(ApiModel):
    """What profile runs may cost."""

    max_gpu_percent: Annotated[
        int,
        Field(ge=1, le=100, description="Profile runs hold at most this share of the cluster's GPUs (at least one)."),
    ] = 25
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
    demand_tolerance_percent: Annotated[
        int,
        Field(
            ge=0, le=50, description="The demand vector is the least that is at most this much slower than the best."
        ),
    ] = 5
    check_memory_model: Annotated[
        bool,
        Field(description="Measure a job that reads through the data cache at one point with less memory as well."),
    ] = True
    max_sweep_points: Annotated[
        int, Field(ge=4, le=240, description="Points of a Sweep at the most, over all GPU types of a job.")
    ] = 64


class SchedulingPolicySpec(ApiModel):
    """Who runs, how they are packed, for how long."""

    policy: Annotated[PolicyName, Field(description="Who should run.")] = "las"
    mechanism: Annotated[MechanismName, Field(description="How CPU and memory are packed.")] = "tune"
    round_seconds: Annotated[int, Field(ge=5, le=86400, description="Length of a round, the lease's length.")] = 300
    queues: Queues = Queues()
    preemption: Preemption = Preemption()
    profiling: Profiling = Profiling()


class InForce(ApiModel):
    """What plans follow now: the spec, or the last valid one where the spec is not."""

    policy: Annotated[PolicyName, Field(description="Who should run.")]
    mechanism: Annotated[MechanismName, Field(description="How CPU and memory are packed.")]
    round_seconds: Annotated[int, Field(ge=1, description="Length of a round.")]


class SchedulingPolicyStatus(ApiModel):
    """Whether the policy is in force. Owned by the extender."""

    in_force: InForce | None = None
    history: ServiceHistory | None = None
    conditions: Conditions = []
