"""What the extender sees of a Tenant (`status`): what it has, uses, borrows and lends now, and has used."""

from typing import Annotated, Final

from pydantic import Field

from synergy_api.base import ApiModel, Conditions, Timestamp

HOURS_KEPT: Final = 25
DAYS_KEPT: Final = 8
MOST_TYPES: Final = 64
ANY_TYPE: Final = "*"
"""In place of a GPU type: of jobs that may run on several."""

Gpus = dict[str, Annotated[int, Field(ge=0)]]
Hours = dict[str, Annotated[float, Field(ge=0)]]


class UsePeriod(ApiModel):
    """The use in one hour or day."""

    number: Annotated[int, Field(ge=0, description="Number of the hour, or day, since 1970 in UTC.")]
    gpu_hours: Annotated[Hours, Field(max_length=MOST_TYPES, description="GPU-hours in it, by GPU type.")] = {}


class GpuHours(ApiModel):
    """GPU-hours of the last day and week. The periods are what the next count goes by."""

    day: Annotated[Hours, Field(max_length=MOST_TYPES, description="GPU-hours of the last 24 hours, by GPU type.")] = {}
    week: Annotated[
        Hours, Field(max_length=MOST_TYPES, description="GPU-hours of the last seven days, by GPU type.")
    ] = {}
    counted_until: Annotated[Timestamp, Field(description="Until when use is counted.")]
    hours: Annotated[
        list[UsePeriod], Field(max_length=HOURS_KEPT, description="Hours in which it used GPUs, the oldest first.")
    ] = []
    days: Annotated[
        list[UsePeriod], Field(max_length=DAYS_KEPT, description="Days in which it used GPUs, the oldest first.")
    ] = []


class TenantSummary(ApiModel):
    """The GPUs in short texts, such as 8 A100, 4 V100, for printer columns. Read by no component."""

    guaranteed: Annotated[str, Field(max_length=1024, description="GPUs that it is guaranteed.")] = ""
    used: Annotated[str, Field(max_length=1024, description="GPUs that it uses.")] = ""
    borrowed: Annotated[str, Field(max_length=1024, description="GPUs that it borrows.")] = ""
    waiting: Annotated[str, Field(max_length=1024, description="GPUs that its jobs wait for.")] = ""


class TenantStatus(ApiModel):
    """What the extender sees of the tenant. GPUs and jobs of its children count for it too."""

    namespaces: Annotated[int, Field(ge=0, description="Namespaces that belong to the tenant.")] = 0
    jobs: Annotated[int, Field(ge=0, description="Unfinished jobs that count for the tenant itself.")] = 0
    never_preempted_gpus: Annotated[
        int, Field(ge=0, description="GPUs that its jobs with preemption Never hold under the cap.")
    ] = 0
    parent: Annotated[
        str, Field(description="The Tenant that plans take as its parent. Empty for a root, and where none fits.")
    ] = ""
    guaranteed: Annotated[
        Gpus,
        Field(
            max_length=MOST_TYPES,
            description="GPUs that plans guarantee, by GPU type: spec.guarantee, or less where the parent or the "
            "cluster has too few.",
        ),
    ] = {}
    used: Annotated[Gpus, Field(max_length=MOST_TYPES, description="GPUs that its jobs hold, by GPU type.")] = {}
    borrowed: Annotated[
        Gpus, Field(max_length=MOST_TYPES, description="GPUs used beyond the guarantee, by GPU type.")
    ] = {}
    lent: Annotated[
        Gpus,
        Field(
            max_length=MOST_TYPES,
            description="GPUs of its guarantee that others use now, by GPU type. Its jobs get them back at a round's "
            "end.",
        ),
    ] = {}
    waiting: Annotated[
        Gpus,
        Field(
            max_length=MOST_TYPES,
            description="GPUs that its waiting jobs ask for, by GPU type; under * those that may be of several types.",
        ),
    ] = {}
    gpu_hours: Annotated[GpuHours | None, Field(description="What it has used lately.")] = None
    summary: Annotated[TenantSummary | None, Field(description="The GPUs as text, for people.")] = None
    conditions: Conditions = []
