"""Fields of the pod template that the plan determines: they are not used, and the user learns it from a condition."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from synergy_api import names
from synergy_api.devices import is_gpu
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.pods.gang import rendezvous

_POD: Final = "spec.template.spec"
_FIRST: Final = f"{_POD}.containers[0]"
_OUR_PREFIX: Final = "SYNERGY_"


def overridden(spec: TrainingJobSpec) -> tuple[str, ...]:
    """The fields of the template that are set and not used. The template has passed validation."""
    if spec.managed is not None:
        return ()
    return (*_of_pod(spec), *_of_first_container(spec), *_of_metadata(spec.template.get("metadata") or {}))


def _of_pod(spec: TrainingJobSpec) -> Iterator[str]:
    pod = spec.template["spec"]
    wanted = {"schedulerName": names.SCHEDULER_NAME, "restartPolicy": "Never"}
    for field in ("schedulerName", "restartPolicy", "hostname", "subdomain", "resources"):
        if pod.get(field) and pod[field] != wanted.get(field):
            yield f"{_POD}.{field}"


def _of_first_container(spec: TrainingJobSpec) -> Iterator[str]:
    container = spec.template["spec"]["containers"][0]
    resources = container.get("resources") or {}
    sizes = {str(spec.gpus), str(spec.gpus_per_worker or spec.gpus)}
    for part in ("requests", "limits"):
        amounts = resources.get(part) or {}
        yield from (f"{_FIRST}.resources.{part}.{name}" for name in ("cpu", "memory") if name in amounts)
        gpus = (name for name in amounts if is_gpu(name) and str(amounts[name]) not in sizes)
        yield from (f"{_FIRST}.resources.{part}['{name}']" for name in gpus)
    if container.get("resizePolicy"):
        yield f"{_FIRST}.resizePolicy"
    ours = rendezvous("", 0, 2 if spec.has_gang else 1, 1)  # a gang may come to have pods of one GPU
    for entry in container.get("env") or []:
        if entry["name"] in ours or entry["name"].startswith(_OUR_PREFIX):
            yield f"{_FIRST}.env {entry['name']}"


def _of_metadata(metadata: Mapping[str, Any]) -> Iterator[str]:
    for part in ("labels", "annotations"):
        for key in metadata.get(part) or {}:
            if key.startswith(f"{names.GROUP}/") and key != names.ANNOTATION_SCRIPT:
                yield f"spec.template.metadata.{part} {key}"
