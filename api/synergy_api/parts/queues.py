"""The knobs of the policies that know no durations, and what they leave in a job's status (Tiresias)."""

from itertools import pairwise
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, JsonValue, model_validator

from synergy_api.base import ApiModel, Timestamp
from synergy_api.parts.policy_options import AS_DESCRIBED, with_options
from synergy_core.model import service_sketch

_SORTED: list[JsonValue] = [{"rule": "self.isSorted()", "message": "must ascend"}]
"""What the API server can check of a long list in one pass; that each value is there once is checked on reading."""
_ASCENDING: list[JsonValue] = [
    {
        "rule": "self.isSorted() && self.all(a, self.exists_one(b, b == a))",
        "message": "must ascend, each value once",
    }
]

Number = TypeVar("Number", int, float)


def _ascend(values: list[Number]) -> list[Number]:
    if any(high <= low for low, high in pairwise(values)):
        raise ValueError("must ascend, each value once")
    return values


@with_options("queues")
class Queues(ApiModel):
    """The queues of `2d-las` and `2d-gittins` (Tiresias, section 3.2.3)."""

    thresholds_gpu_seconds: Annotated[
        list[Annotated[float, Field(gt=0, le=1e12)]],
        AfterValidator(_ascend),
        Field(max_length=8, json_schema_extra={"x-kubernetes-validations": _ASCENDING}),
    ] = AS_DESCRIBED
    learn_thresholds: Annotated[
        bool,
        Field(
            description="Take as many thresholds as there are above from what the cluster's own finished jobs needed "
            "(`status.history`), once 100 have finished."
        ),
    ] = False
    promote_knob: float | None = AS_DESCRIBED


@with_options("placement")
class PackRules(ApiModel):
    """Which jobs need consolidated placement (Tiresias, section 3.3)."""

    pack_limit_percent: int | None = AS_DESCRIBED
    learn_pack_limit: Annotated[
        bool,
        Field(
            description="Take the limit from jobs that have run on few and on many nodes, once there are 5 that "
            "spreading slows down and 5 that it does not."
        ),
    ] = False
    link_bytes_per_second: float | None = AS_DESCRIBED


@with_options("preemption")
class Preemption(ApiModel):
    """When a running job may be displaced."""

    minimum_run_seconds: int = AS_DESCRIBED
    payback: float = AS_DESCRIBED
    max_checkpoint_seconds: Annotated[
        int,
        Field(
            ge=30,
            le=86400,
            description="A job that uses the library gets twice the seconds that its last checkpoint took to leave "
            "after its lease, at most this; later its pods are deleted. A longer grace period of a pod is cut to this.",
        ),
    ] = 600


class Marks(ApiModel):
    """What policies with queues go by from plan to plan. Owned by the extender.

    The clocks are what the job had in all at its last promotion, not amounts that are added up: written twice they say
    the same.
    """

    started_at: Annotated[Timestamp | None, Field(description="When the job was first given GPUs to train.")] = None
    promoted_at: Annotated[
        Timestamp | None, Field(description="When it last went back to the first queue for having waited too long.")
    ] = None
    promoted_gpu_seconds: Annotated[float, Field(ge=0, description="Its attained service at that moment.")] = 0.0
    promoted_waiting_seconds: Annotated[float, Field(ge=0, description="For how long it had waited by then.")] = 0.0
    isolated_seconds: Annotated[
        float,
        Field(
            ge=0,
            description="Under finish-time-fairness: the time that the first isolatedSteps would have taken on 1/n of "
            "the cluster, n being the number of jobs as it was.",
        ),
    ] = 0.0
    isolated_steps: Annotated[float, Field(ge=0, description="The steps that isolatedSeconds covers.")] = 0.0
    counted: Annotated[
        bool, Field(description="Its service is in the SchedulingPolicy's `status.history`; only a finished job's is.")
    ] = False


class ServiceHistory(ApiModel):
    """The service that the cluster's own jobs needed from beginning to end: a histogram of bounded size.

    A job is counted in one update with its UID in `pending`, which stays there until the job's own `marks.counted` says
    so: none is counted twice, even if a leader stops in between.
    """

    jobs: Annotated[int, Field(ge=0, description="Finished jobs counted so far; old ones are forgotten by halves.")] = 0
    buckets: Annotated[
        list[Annotated[int, Field(ge=0, le=service_sketch.LAST)]],
        AfterValidator(_ascend),
        Field(
            max_length=512,
            description="Buckets that hold jobs, ascending: bucket i is (1.1^(i-1), 1.1^i] GPU-seconds.",
            json_schema_extra={"x-kubernetes-validations": _SORTED},
        ),
    ] = []
    counts: Annotated[
        list[Annotated[int, Field(ge=1, le=service_sketch.MOST)]],
        Field(max_length=512, description="Jobs in each of these buckets."),
    ] = []
    pending: Annotated[
        list[Annotated[str, Field(max_length=64)]],
        Field(max_length=256, description="UIDs of jobs that are counted and do not say so themselves yet."),
    ] = []
    learned_thresholds_gpu_seconds: Annotated[
        list[float], Field(max_length=8, description="What `spec.queues.learnThresholds` takes; empty until it can.")
    ] = []

    learned_pack_limit_percent: Annotated[
        float | None, Field(ge=0, description="What `spec.placement.learnPackLimit` takes; absent until it can.")
    ] = None

    @model_validator(mode="after")
    def _pairs(self) -> "ServiceHistory":
        if len(self.buckets) != len(self.counts):
            raise ValueError("counts must be as many as buckets")
        return self
