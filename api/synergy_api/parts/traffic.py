"""What the workers of a job send each other, as its profile run has seen it."""

from typing import Annotated, Literal

from pydantic import Field

from synergy_api.base import ApiModel


class Traffic(ApiModel):
    """What the job's workers sent each other in its profile run, all of them on one node."""

    source: Annotated[
        Literal["Sockets", "NCCL"],
        Field(description="Sockets: the kernel's counters of TCP connections. NCCL: its log of collective calls."),
    ]
    workers: Annotated[int, Field(ge=2, description="Processes that trained together.")]
    bytes_per_step: Annotated[int, Field(ge=1, description="Sent by each worker in a step.")]
    model_bytes: Annotated[int, Field(ge=1, description="Bytes whose all-reduce in a ring sends as much.")]
    sending_seconds: Annotated[
        float | None, Field(ge=0, description="Of each step, how long a worker's connections were sending.")
    ] = None
    message_bytes: Annotated[
        int | None, Field(ge=1, description="Bytes of the buffers of all collective calls of a step, by NCCL.")
    ] = None
    largest_message_bytes: Annotated[int | None, Field(ge=1, description="The largest of these buffers.")] = None
    overlap: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Part of a step during which gradients are sent for nothing, from a run with one worker. "
            "Absent: not measured, 2/3 is assumed.",
        ),
    ] = None
