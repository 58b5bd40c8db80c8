"""Tenant: which namespaces belong together, and how much their jobs may ask for. Only administrators write it."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from synergy_api.base import ApiModel, Conditions

_NAMESPACE_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
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


class TenantSpec(ApiModel):
    """Which namespaces belong to the tenant, and what it may ask for."""

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
            description="The tenant's share beside those of other tenants, for the policy hierarchical. "
            "A weight in the SchedulingPolicy's spec.tenants is stronger.",
        ),
    ] = 1.0
    caps: TenantCaps = TenantCaps()


class TenantStatus(ApiModel):
    """What the extender sees of the tenant."""

    namespaces: Annotated[int, Field(ge=0, description="Namespaces that belong to the tenant.")] = 0
    jobs: Annotated[int, Field(ge=0, description="Unfinished jobs that count for the tenant.")] = 0
    never_preempted_gpus: Annotated[
        int, Field(ge=0, description="GPUs that its jobs with preemption Never hold under the cap.")
    ] = 0
    conditions: Conditions = []


NAME_RULES: list[Any] = [
    {
        "rule": "self.metadata.name.size() <= 63",
        "message": "metadata.name must be at most 63 characters: spec.tenant of TrainingJobs names it",
    }
]
