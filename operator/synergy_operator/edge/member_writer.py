"""Makes and changes the TrainingJobs of an array."""

from collections.abc import Callable

from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.resources import TRAINING_JOBS
from synergy_operator.actions import ChangeMember, CreateMember
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.refused_starts import REFUSED
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key, Object
from synergy_operator.views.refusals import RefusedMember


class MemberWriter:
    """A refusal, for example by a quota, is recorded for the array. The other members go on.

    `wake` is called with each member that is new or changed: the watch brings the version that the answer has brought
    already, which is no news.
    """

    def __init__(
        self,
        client: KubeClient,
        jobs: JobCache,
        refusals: RefusalLog,
        clock: Callable[[], float],
        wake: Callable[[Key], None],
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._refusals = refusals
        self._clock = clock
        self._wake = wake

    async def create(self, array: JobView, action: CreateMember) -> None:
        """Create a member. Errors that may pass are raised."""
        name = action.manifest["metadata"]["name"]
        try:
            answer = await self._client.create(TRAINING_JOBS, action.manifest, array.namespace)
        except Conflict:
            self._refuse(array, f"TrainingJob {name} exists already, and is none of this array")
        except ApiError as error:
            if error.code not in REFUSED and not isinstance(error, NotFound):  # not found: the array's namespace
                raise
            self._refuse(array, f"TrainingJob {name}: {error.message}")
        else:
            self._refusals.refuse_member(array.key, None)
            self._keep(answer)

    async def change(self, array: JobView, action: ChangeMember) -> None:
        """Change a member that still is the same object. Raises TryAgain if it is not."""
        body = {"metadata": {"uid": action.uid}, "spec": action.spec}
        try:
            answer = await self._client.merge_patch(TRAINING_JOBS, action.name, body, array.namespace)
        except (NotFound, Conflict) as error:
            self._changed(array, action.name)
            raise TryAgain(f"TrainingJob {action.name} has changed since it was read") from error
        except ApiError as error:
            if error.code not in REFUSED:
                raise
            self._refuse(array, f"TrainingJob {action.name}: {error.message}", changed=action.name)
        else:
            self._changed(array, action.name)
            self._keep(answer)

    def _keep(self, answer: Object) -> None:
        self._wake(self._jobs.take(answer).key)

    def _refuse(self, array: JobView, message: str, *, changed: str = "") -> None:
        self._refusals.refuse_member(array.key, RefusedMember(message, self._clock(), changed))

    def _changed(self, array: JobView, name: str) -> None:
        """Forget that the API server would not change this member."""
        refused = self._refusals.of(array.key).member
        if refused is not None and refused.changed == name:
            self._refusals.refuse_member(array.key, None)
