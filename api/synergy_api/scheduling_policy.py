"""SchedulingPolicy: how the cluster is scheduled. The one named `default` is in force."""

from typing import Annotated, Literal

from pydantic import Field

from synergy_api.base import ApiModel, Conditions

PolicyName = Literal["fifo", "srtf", "las", "ftf"]
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


class SchedulingPolicySpec(ApiModel):
    """Who runs, how they are packed, for how long."""

    policy: Annotated[PolicyName, Field(description="Who should run.")] = "las"
    mechanism: Annotated[MechanismName, Field(description="How CPU and memory are packed.")] = "tune"
    round_seconds: Annotated[int, Field(ge=5, le=86400, description="Length of a round, the lease's length.")] = 300
    profiling: Profiling = Profiling()


class InForce(ApiModel):
    """What plans follow now: the spec, or the last valid one where the spec is not."""

    policy: Annotated[PolicyName, Field(description="Who should run.")]
    mechanism: Annotated[MechanismName, Field(description="How CPU and memory are packed.")]
    round_seconds: Annotated[int, Field(ge=1, description="Length of a round.")]


class SchedulingPolicyStatus(ApiModel):
    """Whether the policy is in force. Owned by the extender."""

    in_force: InForce | None = None
    conditions: Conditions = []
