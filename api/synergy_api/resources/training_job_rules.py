"""What the API server checks of a TrainingJob beyond its schema."""

from typing import Any

from synergy_api.names import MAX_JOB_NAME
from synergy_api.parts.relations.array import LONGEST_SUFFIX
from synergy_api.parts.relations.clusters import MANAGED_BY_RULES
from synergy_api.parts.relations.managed import MANAGED_RULE
from synergy_api.parts.template import COMMAND_RULE

ONE_END = (
    "give exactly one of steps, epochs and maxRunSeconds: it says when the job is done; steps: 1 suits a program "
    "without a training loop"
)
SPEC_RULES: list[Any] = [
    {
        "rule": "!has(self.gpusPerWorker) || self.gpus % self.gpusPerWorker == 0",
        "message": "gpusPerWorker must divide gpus",
        "fieldPath": ".gpusPerWorker",
    },
    {
        "rule": "has(self.gpusPerWorker) == has(oldSelf.gpusPerWorker) && "
        "(!has(self.gpusPerWorker) || self.gpusPerWorker == oldSelf.gpusPerWorker)",
        "message": "gpusPerWorker is fixed for the life of the job",
        "fieldPath": ".gpusPerWorker",
    },
    {
        "rule": "[has(self.steps), has(self.epochs), has(self.maxRunSeconds)].filter(given, given).size() == 1",
        "message": ONE_END,
        "fieldPath": ".steps",
    },
    {
        "rule": "has(self.array) == has(oldSelf.array)",
        "message": "array can be neither added nor removed later",
        "fieldPath": ".array",
    },
    {
        "rule": "!has(self.throughput) || has(self.steps)",
        "message": "epochs and maxRunSeconds need the library in the script: give steps with throughput",
        "fieldPath": ".throughput",
    },
    MANAGED_RULE,
    *MANAGED_BY_RULES,
    COMMAND_RULE,
]
NAME_RULES: list[Any] = [
    {
        "rule": "!has(self.spec.after) || self.spec.after.all(one, one.job != self.metadata.name)",
        "message": "after must not name the job itself",
        "fieldPath": ".spec.after",
    },
    {
        "rule": f"self.metadata.name.size() <= {MAX_JOB_NAME}",
        "message": f"metadata.name must be at most {MAX_JOB_NAME} characters: pods and a Service are named after it",
    },
    {
        "rule": f"!has(self.spec.array) || self.metadata.name.size() <= {MAX_JOB_NAME - LONGEST_SUFFIX}",
        "message": f"metadata.name of an array must be at most {MAX_JOB_NAME - LONGEST_SUFFIX} characters: names "
        "of its jobs end with their index",
    },
    {
        "rule": "!self.metadata.name.contains('.')",
        "message": "metadata.name must have no dot: pods and a Service are named after it",
    },
]
