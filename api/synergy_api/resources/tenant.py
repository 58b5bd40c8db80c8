"""Tenant: which namespaces belong together, how many GPUs they have, and what their jobs may ask for.

Only administrators write it.
"""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from synergy_api.base import ApiModel

TYPE_NAMES: Final[list[Any]] = [
    {
        "rule": "self.all(type, type.size() >= 1 && type.size() <= 63)",
        "message": "a GPU type has 1 to 63 characters",
    }
]
_SPEC_RULES: list[Any] = [
    {
        "rule": "!has(self.guarantee) || !has(self.limit) || "
        "self.guarantee.all(type, !(type in self.limit) || self.guarantee[type] <= self.limit[type])",
        "message": "guarantee must not be above limit, for any GPU type",
        "fieldPath": ".guarantee",
    }
]
_NAMESPACE_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
MOST_GPU_TYPES: Final = 16
_MOST_GPUS: Final = 1 << 20
GpusByType = Annotated[
    dict[str, Annotated[int, Field(ge=0, le=_MOST_GPUS)]],
    Field(max_length=MOST_GPU_TYPES, json_schema_extra={"x-kubernetes-validations": TYPE_NAMES}),
]
_LABEL_VALUE = Annotated[str, Field(max_length=63)]
_VALUES_RULES: list[Any] = [
    {
        "rule": "self.operator in ['In', 'NotIn'] == (has(self.values) && self.values.size() > 0)",
        "message": "values must have a value with the operators In and NotIn, and none with Exists and DoesNotExist",
        "fieldPath": ".values",
    }
]


class LabelRequirement(ApiModel):
    """One condition on a namespace's labels."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _VALUES_RULES})

    key: Annotated[str, Field(min_length=1, max_length=317, description="The label's key.")]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"],
        Field(description="How the label is compared with the values."),
    ]
    values: Annotated[list[_LABEL_VALUE], Field(max_length=64, description="Values for In and NotIn.")] = []

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        """What the API server checks by a rule, for objects that come without it."""
        if bool(self.values) != (self.operator in ("In", "NotIn")):
            raise ValueError(str(_VALUES_RULES[0]["message"]))
        return self


class NamespaceSelector(ApiModel):
    """Selects namespaces by their labels. An empty selector selects all namespaces."""

    match_labels: Annotated[
        dict[str, _LABEL_VALUE], Field(max_length=32, description="Labels that the namespaces carry.")
    ] = {}
    match_expressions: Annotated[
        list[LabelRequirement], Field(max_length=32, description="Conditions that the namespaces meet, all of them.")
    ] = []


class TenantCaps(ApiModel):
    """The most that the tenant's jobs may ask for. The defaults hold for namespaces of no Tenant too."""

    max_weight: Annotated[
        float,
        Field(gt=1e-6, le=1e6, description="Largest spec.weight of a job. Plans count a larger one as this."),
    ] = 1.0
    max_never_preempted_gpus: Annotated[
        int,
        Field(
            ge=0,
            le=1 << 20,
            description="GPUs that jobs with preemption Never may hold at one time, all of the tenant's jobs together. "
            "Other such jobs wait.",
        ),
    ] = 0
    deadlines: Annotated[
        Literal["Allowed", "Denied"],
        Field(description="Whether plans go by spec.slo.deadline of the tenant's jobs."),
    ] = "Denied"
    max_priority: Annotated[
        int,
        Field(
            ge=-(1 << 31),
            le=1_000_000_000,
            description="Largest value of a job's PriorityClass. Plans count a larger one as this, or as the "
            "cluster's default class where that is larger, and as not urgent.",
        ),
    ] = 0
    max_preemptions_per_hour: Annotated[
        int | None,
        Field(
            ge=0,
            le=1 << 20,
            description="Preemption budget: plans end at most so many runs of the tenant's jobs within an hour, those "
            "of its children included. A guarantee that has waited for an hour goes beyond it. By default there is no "
            "such budget.",
        ),
    ] = None


class TenantSpec(ApiModel):
    """Which namespaces belong to the tenant, what it has of the cluster, and what its jobs may ask for."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _SPEC_RULES})

    namespaces: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=63, pattern=_NAMESPACE_PATTERN)]],
        Field(
            max_length=1024,
            description="Names of namespaces that belong to the tenant.",
            json_schema_extra={"x-kubernetes-list-type": "set"},
        ),
    ] = []
    namespace_selector: Annotated[
        NamespaceSelector | None,
        Field(description="Namespaces whose labels match belong to the tenant too, beside spec.namespaces."),
    ] = None
    default: Annotated[
        bool,
        Field(
            description="Whether jobs without spec.tenant count for this tenant where their namespace belongs to "
            "several. Among several defaults, or none, the first in order of name is taken."
        ),
    ] = False
    weight: Annotated[
        float,
        Field(
            gt=1e-6,
            le=1e6,
            description="The tenant's share beside those of its siblings: of the cluster under the policy "
            "hierarchical, of what is lent where tenants have guarantees. A weight in the SchedulingPolicy's "
            "spec.tenants is stronger.",
        ),
    ] = 1.0
    parent: Annotated[
        str,
        Field(
            max_length=63,
            description="Name of the Tenant that this one is part of. A Tenant without a parent is a root. What its "
            "children use counts for the parent too.",
        ),
    ] = ""
    guarantee: Annotated[
        GpusByType,
        Field(
            description="GPUs that the tenant gets when its jobs want them, by GPU type: free ones at once, others at "
            "the next round. Of a type that is not named, it has what its children are guaranteed together."
        ),
    ] = {}
    limit: Annotated[
        GpusByType,
        Field(
            description="GPUs that the tenant and its children may use at most, by GPU type. Types that are not named "
            "have no limit."
        ),
    ] = {}
    borrowing: Annotated[
        GpusByType,
        Field(
            description="GPUs that the tenant may use beyond its guarantee at most, by GPU type. Of types that are not "
            "named it may borrow all that is free, up to its limit."
        ),
    ] = {}
    lending: Annotated[
        GpusByType,
        Field(
            description="GPUs of its guarantee that others may use while it does not, at most, by GPU type. Of types "
            "that are not named it lends all."
        ),
    ] = {}
    caps: TenantCaps = TenantCaps()

    @model_validator(mode="after")
    def _within_limits(self) -> Self:
        """What the API server checks by a rule, for objects that come without it."""
        if any(gpus > self.limit.get(gpu_type, gpus) for gpu_type, gpus in self.guarantee.items()):
            raise ValueError(str(_SPEC_RULES[0]["message"]))
        return self


NAME_RULES: list[Any] = [
    {
        "rule": "self.metadata.name.size() <= 63",
        "message": "metadata.name must be at most 63 characters: spec.tenant of TrainingJobs names it",
    },
    {
        "rule": "!has(self.spec.parent) || self.spec.parent != self.metadata.name",
        "message": "spec.parent must not be the Tenant itself",
    },
]
