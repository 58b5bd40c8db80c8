"""ThroughputProfile: a measured profile under its fingerprint, shared by identical jobs."""

from typing import Annotated

from pydantic import Field

from synergy_api.base import ApiModel, Conditions, Timestamp
from synergy_api.parts.profile import ConfidenceList, MatrixList, ProfilePoint
from synergy_api.parts.usage import MOST_PAIRS, ReferencePair, Traffic, UsageList


class ThroughputProfileSpec(ApiModel):
    """What was measured, and for which jobs it holds: those with the same image, command, batch size and GPUs."""

    fingerprint: Annotated[str, Field(min_length=8, max_length=64, description="Hash of what follows.")]
    image: Annotated[str, Field(min_length=1, description="Image of the training container.")]
    image_digest: Annotated[
        str,
        Field(
            max_length=71,
            description="Digest of the image that ran, where its name leaves it open.",
        ),
    ] = ""
    command: Annotated[list[str], Field(description="Command and arguments of the training container.")] = []
    batch_size: Annotated[int | None, Field(ge=1, description="Samples per training step, over all GPUs.")] = None
    gpus: Annotated[int, Field(ge=1, description="GPUs of the measured job.")]
    points: Annotated[list[ProfilePoint], Field(max_length=256, description="Points that were measured.")] = []
    matrices: Annotated[
        MatrixList, Field(min_length=1, max_length=16, description="The full matrix for each GPU type.")
    ]
    confidence: Annotated[
        ConfidenceList, Field(max_length=16, description="How well the matrices are known, for each GPU type.")
    ] = []
    usage: Annotated[
        UsageList, Field(max_length=16, description="What the job does to a GPU alone, where that was sampled.")
    ] = []
    traffic: Traffic | None = None
    pairs: Annotated[
        list[ReferencePair],
        Field(max_length=MOST_PAIRS, description="What it and reference jobs kept on a shared GPU, by models."),
    ] = []
    measured_at: Annotated[Timestamp, Field(description="When the last of the points was measured.")]


class ThroughputProfileStatus(ApiModel):
    """Whether jobs may use the profile. Owned by the operator."""

    conditions: Conditions = []
