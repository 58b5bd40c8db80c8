"""Writes a job's progress, and the texts about it that `kubectl get` shows."""

from collections.abc import Callable

from synergy_api.length import total_steps
from synergy_api.names import MANAGER_PROGRESS
from synergy_api.parts.progress import Progress
from synergy_api.parts.summary import Summary, speed_text, steps_text
from synergy_extender.cluster.views import JobView
from synergy_kube import KubeClient, NotFound
from synergy_kube.answers import Object
from synergy_kube.resources import TRAINING_JOBS


class ProgressWriter:
    """Server-side applies of status.progress and its texts. `observe` gets each object as written."""

    def __init__(self, client: KubeClient, observe: Callable[[Object], None]) -> None:
        self._client = client
        self._observe = observe

    async def apply(self, job: JobView, progress: Progress) -> None:
        """Write it unless the job was written to since `job` was read; a job that is gone has none.

        Raises Conflict if it was, other ApiErrors, aiohttp.ClientError, TimeoutError.
        """
        status = job.status.model_copy(update={"progress": progress})
        summary = Summary(
            progress=steps_text(progress.steps, total_steps(job.spec, status)),
            speed=speed_text(progress.steps_per_second),
        )
        body = {
            "metadata": {"uid": job.uid, "resourceVersion": job.resource_version},
            "status": {"progress": progress.to_wire(), "summary": summary.to_wire()},
        }
        try:
            answer = await self._client.apply(
                TRAINING_JOBS, job.key.name, body, job.key.namespace, manager=MANAGER_PROGRESS, subresource="status"
            )
        except NotFound:
            return
        self._observe(answer)
