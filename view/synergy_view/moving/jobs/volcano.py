"""Jobs of Volcano: the task with GPUs becomes the workers."""

from typing import Any, Final

from synergy_view.moving.jobs.ending import set_end, set_lifetime
from synergy_view.moving.jobs.words import JobDraft, Workers, set_priority
from synergy_view.moving.jobs.workers import gpus_of
from synergy_view.moving.words import Fields

GROUP: Final = "batch.volcano.sh"
_KNOWN: Final = {
    "policies": "has no counterpart: a failed worker ends the run, and all start again; an evicted one is no failure",
    "maxUpdateReplicas": "has no counterpart",
    "runningEstimate": "has no counterpart: the plan estimates it from measured speeds",
    "minSuccess": "has no counterpart: the job has succeeded when all workers have",
}
_PLUGINS: Final = {
    "pytorch": "MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE are in each worker's environment",
    "svc": "a headless Service gives each worker a name; VC_*_HOSTS has no counterpart, MASTER_ADDR has rank 0",
    "env": "VK_TASK_INDEX is RANK",
    "ssh": "has no counterpart: start the program by torchrun, or with RANK and MASTER_ADDR",
    "mpi": "has no counterpart: start the program by torchrun, or with RANK and MASTER_ADDR",
    "tensorflow": "TF_CONFIG has no counterpart: make it from RANK, WORLD_SIZE and MASTER_ADDR",
}


def job(draft: JobDraft, fields: Fields) -> Workers | None:
    """The workers: those of the task that has GPUs; None if none has."""
    draft.queue = str(fields.take("queue") or "")
    set_priority(draft, given=fields.take("priorityClassName"), path="spec.priorityClassName")
    fields.take("schedulerName")
    with_gpus, count = [], 0
    for task in fields.each("tasks"):
        found = _task(draft, task)
        with_gpus += [found] if found is not None else []
        count += 0 if found is None else found.count
    least = draft.number(fields.take("minAvailable"), "spec.minAvailable", count)
    if with_gpus and least < count:
        draft.remark("spec.minAvailable", f"{least} of {count}: all workers of a TrainingJob start together")
    plugins = fields.within("plugins")
    for name in plugins.names:
        plugins.take(name)
        draft.remark(plugins.path(name), _PLUGINS.get(name, "has no counterpart"))
    if not with_gpus:
        return None
    for other in with_gpus[1:]:
        draft.remark(other.path, "a second task with GPUs is not translated: make a TrainingJob of it")
    set_end(draft)
    set_lifetime(draft, fields, retries="maxRetry")
    workers = _with_volumes(draft, fields, with_gpus[0])
    fields.tell_rest(draft, _KNOWN)
    return workers


def _task(draft: JobDraft, task: Fields) -> Workers | None:
    name = str(task.take("name") or "")
    template = task.take("template")
    count = draft.number(task.take("replicas"), task.path("replicas"), 1)
    if not isinstance(template, dict) or not (template.get("spec") or {}).get("containers"):
        raise ValueError(f"{draft.source}: {task.path('template')}: must have containers")
    if count == 0 or gpus_of(template) == 0:
        draft.remark(task.path("name"), f"task {name} has no GPU and is not translated: run it as a Deployment or Job")
        return None
    task.take("minAvailable")
    task.tell_rest(draft, {**_KNOWN, "dependsOn": "spec.after names jobs that come first; tasks have no order"})
    return Workers(count, template, task.path("template"))


def _with_volumes(draft: JobDraft, fields: Fields, workers: Workers) -> Workers:
    """The job's own volumes, in the template."""
    template: dict[str, Any] = {**workers.template, "spec": dict(workers.template["spec"])}
    pod = template["spec"]
    for index, volume in enumerate(fields.each("volumes")):
        claim, path = volume.take("volumeClaimName"), volume.take("mountPath")
        if not claim or not path:
            draft.remark(volume.path("volumeClaim"), f"make the claim yourself, and mount it at {path}")
            continue
        name = f"volume-{index}"
        pod["volumes"] = [*(pod.get("volumes") or []), {"name": name, "persistentVolumeClaim": {"claimName": claim}}]
        first, *others = pod["containers"]
        mounts = [*(first.get("volumeMounts") or []), {"name": name, "mountPath": path}]
        pod["containers"] = [{**first, "volumeMounts": mounts}, *others]
    return Workers(workers.count, template, workers.path)
