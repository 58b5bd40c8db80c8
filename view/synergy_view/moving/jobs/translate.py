"""Jobs of Kubernetes, Volcano, KAI and Kubeflow as TrainingJobs, with a remark about each line that is lost."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from synergy_api.resources.training_job import TrainingJobSpec
from synergy_view.moving.jobs import batch, pytorch, volcano
from synergy_view.moving.jobs.shape import check_shape
from synergy_view.moving.jobs.words import JobDraft, Workers
from synergy_view.moving.jobs.workers import gpus_of, set_workers
from synergy_view.moving.words import Fields, Object, Remark

_KINDS: Final[Mapping[tuple[str, str], Callable[[JobDraft, Fields], Workers | None]]] = {
    ("batch", "Job"): batch.job,
    ("v1", "Pod"): batch.pod,
    (volcano.GROUP, "Job"): volcano.job,
    (pytorch.GROUP, "PyTorchJob"): pytorch.job,
}
_ENDED: Final = frozenset({"Complete", "Failed", "Succeeded"})
_ENDED_PHASES: Final = frozenset({"Completed", "Failed", "Aborted", "Terminated", "Succeeded"})


def is_job(item: Object) -> bool:
    """Whether the object is of a kind that becomes a TrainingJob."""
    return (group_of(item), str(item.get("kind"))) in _KINDS


def group_of(item: Object) -> str:
    """The API group; `v1` of the core group."""
    return str(item.get("apiVersion", "")).partition("/")[0]


def job_drafts(items: Iterable[Object], others: list[Remark]) -> list[JobDraft]:
    """A draft for each job that has GPUs and has not ended; remarks about those that make none go to `others`."""
    return [draft for item in items if (draft := _draft(item, others)) is not None]


def _draft(item: Object, others: list[Remark]) -> JobDraft | None:
    draft = JobDraft("", item["metadata"])
    draft.source = f"{item['kind']} {draft.name}"
    _check_template(item, draft.source)
    check_shape(item, draft.source)
    problem = _ended(item) or _owner(item) or draft.name_problem()
    if problem:
        others.append(Remark(draft.source, "", problem))
        return None
    if not draft.metadata.get("name"):
        draft.remark("metadata.generateName", f"kubectl apply needs a name: it is {draft.name}")
    try:
        workers = _KINDS[group_of(item), str(item["kind"])](draft, Fields(item.get("spec") or {}, "spec", draft.source))
        none = workers is None or gpus_of(workers.template) == 0
    except ValueError as error:
        raise ValueError(_with_source(draft.source, error)) from None
    if workers is None or none:
        others += [*draft.remarks, Remark(draft.source, "", "asks for no GPU that plans count: leave it as it is")]
        return None
    set_workers(draft, workers)
    return draft


def _with_source(source: str, error: ValueError) -> str:
    return str(error) if str(error).startswith(source) else f"{source}: {error}"


def _check_template(item: Object, source: str) -> None:
    """A Job and a Pod have containers. Raises ValueError if not."""
    spec: Any = item.get("spec") or {}
    if item["kind"] == "Pod":
        pod, path = spec, "spec"
    elif group_of(item) == "batch":
        template = spec.get("template")
        pod, path = (template.get("spec") if isinstance(template, dict) else None), "spec.template.spec"
    else:
        return
    containers = pod.get("containers") if isinstance(pod, dict) else None
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        raise ValueError(f"{source}: {path}: must have containers")


def _ended(item: Object) -> str:
    status = item.get("status") or {}
    conditions = status.get("conditions") or []
    ended = any(one.get("type") in _ENDED and one.get("status") == "True" for one in conditions)
    state = status.get("state")
    phase = status.get("phase") or (state.get("phase") if isinstance(state, dict) else None)
    return "has ended and is not translated" if ended or phase in _ENDED_PHASES else ""


def _owner(item: Object) -> str:
    owner = next(iter(item["metadata"].get("ownerReferences") or []), None)
    return f"belongs to {owner.get('kind')} {owner.get('name')}: translate that" if owner else ""


def finished(draft: JobDraft) -> tuple[Object, tuple[Remark, ...]]:
    """The TrainingJob and the remarks. Raises ValueError if it is none that the API server takes."""
    order = ("gpus", "gpusPerWorker", "gpuTypes", "steps", "tenant", "priorityClassName", "suspend")
    draft.spec = {name: draft.spec[name] for name in (*order, *draft.spec) if name in draft.spec}
    draft.spec["template"] = draft.spec.pop("template")
    try:
        TrainingJobSpec.model_validate(draft.spec)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{draft.source}: the TrainingJob's spec.{path}: {first['msg']}") from error
    return draft.manifest(), tuple(draft.remarks)
