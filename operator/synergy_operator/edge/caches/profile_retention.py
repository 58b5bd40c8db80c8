"""Deletes published ThroughputProfiles if there are too many of them: each program that is measured leaves one."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from synergy_kube import Conflict, KubeClient, NotFound
from synergy_kube.resources import THROUGHPUT_PROFILES
from synergy_operator.edge.work_queue import WorkQueue
from synergy_operator.profile.known_profiles import surplus
from synergy_operator.views.known_profile import PublishedProfile
from synergy_operator.views.metadata import Key

_LOG = logging.getLogger(__name__)
_AT_ONCE: Final = 20
"""Profiles that one pass deletes at most."""
_PAUSE_SECONDS: Final = 20.0
"""Between two passes: one deletion a second, more than any cluster measures."""
_SURPLUS: Final = "the surplus of ThroughputProfiles"


class ProfileRetention:
    """Deletes some of the surplus in each pass. A pass that fails is repeated, as other work is."""

    def __init__(
        self,
        client: KubeClient,
        published: Mapping[str, PublishedProfile],
        unfinished: Callable[[str], Sequence[Key]],
    ) -> None:
        """`published` are the present profiles by name, `unfinished` gives the jobs of a fingerprint that have not
        ended."""
        self._client = client
        self._published = published
        self._unfinished = unfinished
        self._passes: WorkQueue[str] = WorkQueue(self._pass, workers=1)

    async def run(self) -> None:
        """Delete until cancelled. The first pass waits: the status of a new job does not have its fingerprint yet."""
        self._passes.add_after(_SURPLUS, _PAUSE_SECONDS)
        await self._passes.run()

    async def _pass(self, _: str) -> float:
        chosen = surplus(self._published.values(), self._unfinished)[:_AT_ONCE]
        await asyncio.gather(*(self._delete(profile) for profile in chosen))
        if chosen:
            _LOG.info("%d of %d published ThroughputProfiles are deleted", len(chosen), len(self._published))
        return _PAUSE_SECONDS

    async def _delete(self, profile: PublishedProfile) -> None:
        """Delete this very profile: another that has taken its name stays."""
        with suppress(NotFound, Conflict):
            await self._client.delete(THROUGHPUT_PROFILES, profile.name, uid=profile.uid)
