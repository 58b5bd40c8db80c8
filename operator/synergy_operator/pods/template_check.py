"""The check that the parts of a pod template that the operator reads have the right shape.

The API server checks the rest when it creates the pods. It cannot check them earlier, because a TrainingJob's template
may hold any field of any Kubernetes version.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from synergy_api.parts.template import depth_problem


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Resources(_Part):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class _Named(_Part):
    name: str


class _Container(_Named):
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_Named] | None = None
    volumeMounts: list[_Named] | None = None  # noqa: N815 - names of the Kubernetes API
    resources: _Resources | None = None


class _Requirement(_Part):
    key: str
    operator: str
    values: list[str] | None = None


class _Term(_Part):
    matchExpressions: list[_Requirement] | None = None  # noqa: N815
    matchFields: list[_Requirement] | None = None  # noqa: N815


class _Terms(_Part):
    nodeSelectorTerms: list[_Term] | None = None  # noqa: N815


class _NodeAffinity(_Part):
    requiredDuringSchedulingIgnoredDuringExecution: _Terms | None = None  # noqa: N815


class _Affinity(_Part):
    nodeAffinity: _NodeAffinity | None = None  # noqa: N815


class _Toleration(_Part):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class _Spec(_Part):
    containers: list[_Container]
    initContainers: list[_Container] | None = None  # noqa: N815
    volumes: list[_Named] | None = None
    tolerations: list[_Toleration] | None = None
    nodeSelector: dict[str, str] | None = None  # noqa: N815
    affinity: _Affinity | None = None
    schedulingGates: list[_Named] | None = None  # noqa: N815


class _Metadata(_Part):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Template(_Part):
    metadata: _Metadata | None = None
    spec: _Spec


def template_problem(template: dict[str, Any]) -> str:
    """The first field of a wrong shape, with what is wrong; empty if there is none."""
    problem = depth_problem(template)
    if problem:
        return problem
    try:
        _Template.model_validate(template)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in ("spec.template", *first["loc"]))
        return f"{field}: {first['msg']}"
    return ""
