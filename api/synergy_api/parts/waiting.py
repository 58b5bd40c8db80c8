"""Why a job does not run, or not as its spec asks (`status.queue`, `late`, `restriction`, `problem`), and which of its
runs plans ended (`status.preemptions`)."""

from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from synergy_api.base import ApiModel, Timestamp

PreemptionRule = Literal["Node", "Urgent", "Guarantee", "PriorityClass", "Move", "TenantLimit", "Policy"]
PREEMPTION_RULES: Final[tuple[str, ...]] = get_args(PreemptionRule)
MOST_PREEMPTIONS: Final = 16
"""Preemptions that a job's status keeps: more than any budget for an hour."""
_WORDS: Final = {
    "Node": "a node of the run is gone or must be empty",
    "Urgent": "{by}, whose class is urgent, gets the GPUs at once",
    "Guarantee": "{by} gets the GPUs by its tenant's guarantee",
    "PriorityClass": "{by} gets the GPUs by its higher PriorityClass",
    "Move": "the plan gives the job other GPUs",
    "TenantLimit": "its tenant holds more GPUs than it may",
    "Policy": "{by} gets the GPUs by the policy's order",
}


class QueueStatus(ApiModel):
    """Why the job is not running. Owned by the extender; absent while it runs."""

    position: Annotated[
        int,
        Field(
            ge=1,
            description="Place in the policy's order among the waiting: exact for the first ten, within a tenth for "
            "those behind them.",
        ),
    ]
    reason: Annotated[str, Field(description="One of the planner's closed list of reasons.")]
    message: Annotated[str, Field(description="The reason in words and the next step.")] = ""
    estimated_start: Annotated[
        Timestamp | None,
        Field(description="When the job will start: with even chances sooner or later. Absent while it is not known."),
    ] = None
    estimated_start_by: Annotated[
        Timestamp | None,
        Field(description="By then it will have started, in nine of ten forecasts. Absent while it is not known."),
    ] = None

    @property
    def told(self) -> tuple[int, str, str]:
        """Position, reason and message: what a plan says. The estimates are a forecast's."""
        return self.position, self.reason, self.message


class Late(ApiModel):
    """Why the job will miss spec.slo.deadline. Owned by the extender."""

    reason: Annotated[str, Field(description="One of the planner's closed list of reasons.")]
    message: Annotated[str, Field(max_length=32768, description="The reason in words and what would help.")] = ""


class Restriction(ApiModel):
    """What of the spec plans do not follow, because the cluster's administrator has not allowed it. Owned by the
    extender; absent where they follow all of it."""

    tenant: Annotated[str, Field(description="The tenant that the job counts for.")]
    reason: Annotated[str, Field(description="One of the closed list of reasons.")]
    message: Annotated[str, Field(max_length=32768, description="What plans do not follow, and what to change.")] = ""


class JobProblem(ApiModel):
    """What keeps the job from going on. Owned by the operator; absent while it runs or merely waits for its turn."""

    reason: Annotated[str, Field(description="One of the closed list of reasons.")]
    message: Annotated[str, Field(max_length=32768, description="What is wrong and what to change, in words.")]


class PreemptionRecord(ApiModel):
    """A run that a plan ended. Written by the extender."""

    at: Annotated[Timestamp, Field(description="When the plan ended the run, RFC 3339.")]
    run: Annotated[int, Field(ge=0, description="The run.")]
    rule: Annotated[
        PreemptionRule,
        Field(
            description="Why: Node, a node is gone or must be empty; Urgent, a job of an urgent class; Guarantee, "
            "another tenant's guarantee; PriorityClass, a higher class; Move, the plan gives the job other GPUs; "
            "TenantLimit, its own tenant's limit; Policy, the policy's order."
        ),
    ]
    by: Annotated[
        list[Annotated[str, Field(max_length=317)]],
        Field(
            max_length=3,
            description="Jobs of the same namespace that get the GPUs, namespace/name, the first few. Others are not "
            "named.",
        ),
    ] = []

    @property
    def text(self) -> str:
        """The preemption in words."""
        return _WORDS[self.rule].format(by=", ".join(self.by) or "another job")


def kept(before: list[PreemptionRecord], new: PreemptionRecord) -> list[PreemptionRecord]:
    """The newest preemptions, the newest last."""
    return [*before, new][-MOST_PREEMPTIONS:]


class Slo(ApiModel):
    """What the user was promised."""

    deadline: Annotated[Timestamp, Field(description="When the job should be done, RFC 3339.")]
