"""Which runs of a job a plan ended, for which jobs, by which rule (`status.preemptions`)."""

from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from synergy_api.base import ApiModel, Timestamp

PreemptionRule = Literal["Node", "Urgent", "Guarantee", "PriorityClass", "Move", "TenantLimit", "Policy"]
PREEMPTION_RULES: Final[tuple[str, ...]] = get_args(PreemptionRule)
MOST_PREEMPTIONS: Final = 16
"""Preemptions that a job's status keeps: more than any budget for an hour."""
_WORDS: Final = {
    "Node": "a node of the run is gone",
    "Urgent": "{by}, whose class is urgent, gets the GPUs at once",
    "Guarantee": "{by} gets the GPUs by its tenant's guarantee",
    "PriorityClass": "{by} gets the GPUs by its higher PriorityClass",
    "Move": "the plan gives the job other GPUs",
    "TenantLimit": "its tenant holds more GPUs than it may",
    "Policy": "{by} gets the GPUs by the policy's order",
}


class PreemptionRecord(ApiModel):
    """A run that a plan ended. Written by the extender."""

    at: Annotated[Timestamp, Field(description="When the plan ended the run, RFC 3339.")]
    run: Annotated[int, Field(ge=0, description="The run.")]
    rule: Annotated[
        PreemptionRule,
        Field(
            description="Why: Node, a node is gone; Urgent, a job of an urgent class; Guarantee, another tenant's "
            "guarantee; PriorityClass, a higher class; Move, the plan gives the job other GPUs; TenantLimit, its own "
            "tenant's limit; Policy, the policy's order."
        ),
    ]
    by: Annotated[
        list[Annotated[str, Field(max_length=317)]],
        Field(max_length=3, description="Jobs that get the GPUs, namespace/name, the first few."),
    ] = []

    @property
    def text(self) -> str:
        """The preemption in words."""
        return _WORDS[self.rule].format(by=", ".join(self.by) or "another job")


def kept(before: list[PreemptionRecord], new: PreemptionRecord) -> list[PreemptionRecord]:
    """The newest preemptions, the newest last."""
    return [*before, new][-MOST_PREEMPTIONS:]
