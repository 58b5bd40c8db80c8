"""`spec.managed` of a TrainingJob: the object whose pods are its workers."""

from typing import Annotated, Any, Final

from pydantic import Field

from synergy_api.base import ApiModel

MANAGED_RULE: Final[dict[str, Any]] = {
    "rule": "has(self.managed) == has(oldSelf.managed) && (!has(self.managed) || self.managed == oldSelf.managed)",
    "message": "managed is fixed for the life of the job",
    "fieldPath": ".managed",
}


class Managed(ApiModel):
    """The object that this job starts and stops. The operator writes it. The object's own controller makes the pods."""

    api_version: Annotated[str, Field(min_length=1, max_length=253, description="API version of the object.")]
    kind: Annotated[str, Field(min_length=1, max_length=63, description="Kind of the object.")]
    name: Annotated[str, Field(min_length=1, max_length=253, description="Name of the object.")]
