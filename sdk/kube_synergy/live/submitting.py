"""Creating a job with the objects that it owns, holding it and letting it go on."""

from contextlib import suppress

from kube_synergy.live.cluster import Cluster, Object
from kube_synergy.making.submission import Submission
from synergy_kube import Conflict, NotFound
from synergy_kube.resources import TRAINING_JOBS
from synergy_view.seen import SeenJob, read


async def create(cluster: Cluster, submission: Submission, *, dry_run: bool = False) -> SeenJob:
    """The job first, then the objects that it owns: its pods wait for them. If one of these is refused, the job is
    deleted again.

    Raises ApiError with the API server's words.
    """
    body = submission.job
    namespace = body.get("metadata", {}).get("namespace") or cluster.own_namespace
    created = await cluster.client.create(TRAINING_JOBS, body, namespace, dry_run=dry_run)
    metadata = created["metadata"]
    owner = {
        "apiVersion": TRAINING_JOBS.api_version,
        "kind": TRAINING_JOBS.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    try:
        for resource, owned in submission.owned:
            with_owner: Object = {**owned, "metadata": {**owned["metadata"], "ownerReferences": [owner]}}
            await cluster.client.create(resource, with_owner, namespace, dry_run=dry_run)
    except BaseException:
        if not dry_run:
            with suppress(NotFound):
                await cluster.client.delete(TRAINING_JOBS, metadata["name"], namespace, uid=metadata["uid"])
        raise
    return read(created)


async def set_suspend(cluster: Cluster, name: str, uid: str | None = None, *, suspend: bool) -> tuple[SeenJob, bool]:
    """Write `spec.suspend`: the job as it was, and whether anything was changed. A job that has ended stays as it is.

    Raises NotFound, also where a later job has the name.
    """
    job = await cluster.job(name, uid)
    if job.finished or job.spec.suspend == suspend:
        return job, False
    body = {"metadata": {"uid": job.uid}, "spec": {"suspend": suspend}}
    try:
        await cluster.client.merge_patch(TRAINING_JOBS, name, body, cluster.own_namespace)
    except Conflict:
        raise NotFound(404, "NotFound", f"the job {name} was replaced by another one of its name") from None
    return job, True


async def delete(cluster: Cluster, name: str, uid: str) -> bool:
    """Delete a job and what it owns; False where it is gone. A later job of the name stays."""
    try:
        await cluster.client.delete(TRAINING_JOBS, name, cluster.own_namespace, uid=uid)
    except (NotFound, Conflict):
        return False
    return True
