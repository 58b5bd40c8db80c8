"""Jobs that a job waits for."""

from typing import Annotated, Literal

from pydantic import Field

from synergy_api.base import ApiModel
from synergy_api.names import MAX_JOB_NAME

MOST_DEPENDENCIES = 32


class Dependency(ApiModel):
    """A job of the same namespace that comes first."""

    job: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_JOB_NAME,
            description="Name of a TrainingJob in the same namespace. It may be created later.",
        ),
    ]
    until: Annotated[
        Literal["Succeeded", "Finished"],
        Field(
            description="Succeeded waits for its success, and this job fails if it fails. Finished waits for its end, "
            "however it ends."
        ),
    ] = "Succeeded"


Dependencies = Annotated[
    list[Dependency],
    Field(
        max_length=MOST_DEPENDENCIES,
        description="Jobs that come first. The job is neither profiled nor planned before; once it has run, they no "
        "longer matter.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["job"]},
    ),
]
MetDependencies = Annotated[
    list[Annotated[str, Field(max_length=MAX_JOB_NAME)]],
    Field(
        max_length=MOST_DEPENDENCIES,
        description="Jobs of spec.after that this job waits for no longer. They may have been deleted since.",
    ),
]
