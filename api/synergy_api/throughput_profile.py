"""ThroughputProfile: a measured profile under its fingerprint, shared by identical jobs."""

from typing import Annotated

from pydantic import Field

from synergy_api.base import ApiModel, Timestamp
from synergy_api.profile import ProfilePoint, SensitivityMatrix


class ThroughputProfileSpec(ApiModel):
    """What was measured, and for which jobs it holds: those with the same image, command, batch size and GPUs."""

    fingerprint: Annotated[str, Field(min_length=8, max_length=64, description="Hash of what follows.")]
    image: str
    command: list[str] = []
    batch_size: Annotated[int | None, Field(ge=1)] = None
    gpus: Annotated[int, Field(ge=1)]
    points: Annotated[list[ProfilePoint], Field(max_length=256)] = []
    matrices: Annotated[list[SensitivityMatrix], Field(min_length=1, max_length=16)]
    measured_at: Timestamp
