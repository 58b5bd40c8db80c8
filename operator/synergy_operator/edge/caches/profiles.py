"""The ThroughputProfiles that jobs may use, and the conditions of all of them. Any user with access may write one."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from synergy_api.names import MANAGER_OPERATOR
from synergy_api.reasons import ENTRIES, Finding
from synergy_api.timestamps import format_time
from synergy_kube import Change, KubeClient, NotFound
from synergy_kube.events import Subject, post_event
from synergy_kube.resources import THROUGHPUT_PROFILES
from synergy_operator.edge.caches.profile_retention import ProfileRetention
from synergy_operator.edge.trimming import VIEW
from synergy_operator.edge.work_queue import WorkQueue
from synergy_operator.profile.known_profiles import (
    check_profile,
    fingerprint_of_name,
    profile_status,
    published_profile,
)
from synergy_operator.views.known_profile import KnownProfile, PublishedProfile
from synergy_operator.views.metadata import Key, Object

_METADATA: Final = ("name", "uid", "resourceVersion", "generation")


@dataclass(frozen=True, slots=True)
class _Views:
    """What is read from a profile. `published` is None if the operator may not delete it."""

    known: KnownProfile
    finding: Finding
    published: PublishedProfile | None


def trim_profile(item: Object) -> dict[str, Any]:
    """What a reflector keeps of a ThroughputProfile: its views and its status. The spec is in the views already."""
    metadata = item["metadata"]
    spec, finding = check_profile(item)
    known = KnownProfile(metadata["name"], metadata["resourceVersion"], spec)
    return {
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "status": item.get("status") or {},
        VIEW: _Views(known, finding, published_profile(item, spec)),
    }


class ProfileCache:
    """Follows the ThroughputProfiles, as `trim_profile` leaves them, and deletes the surplus of published ones.

    `known` has them by fingerprint. `on_known` is called with the fingerprint of each profile that may be used.
    """

    def __init__(
        self,
        client: KubeClient,
        clock: Callable[[], float],
        on_known: Callable[[str], None],
        unfinished: Callable[[str], Sequence[Key]],
    ) -> None:
        """`unfinished` gives the jobs of a fingerprint that have not ended."""
        self._client = client
        self._clock = clock
        self._on_known = on_known
        self._items: dict[str, Object] = {}
        self._published: dict[str, PublishedProfile] = {}
        self._queue: WorkQueue[str] = WorkQueue(self._write_status, workers=2)
        self._retention = ProfileRetention(client, self._published, unfinished)
        self.known: dict[str, tuple[KnownProfile, ...]] = {}

    async def run(self) -> None:
        """Write the conditions of profiles, and delete the surplus, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in (self._queue, self._retention):
                group.create_task(part.run())

    def update(self, change: Change) -> None:
        """A profile was created, changed or deleted."""
        name = change.key[1]
        fingerprint = fingerprint_of_name(name)
        others = tuple(known for known in self.known.pop(fingerprint, ()) if known.name != name)
        self._items.pop(name, None)
        self._published.pop(name, None)
        if change.new is None:
            self.known |= {fingerprint: others} if others else {}
            return
        views: _Views = change.new[VIEW]
        self.known[fingerprint] = (*others, views.known)
        self._items[name] = change.new
        if views.published is not None:
            self._published[name] = views.published
        if views.known.spec is not None:
            self._on_known(fingerprint)
        self._queue.add(name)

    async def _write_status(self, name: str) -> None:
        item = self._items.get(name)
        if item is None:
            return
        finding: Finding = item[VIEW].finding
        status = profile_status(item, finding, self._clock())
        if status is None:
            return
        body = {"status": status.to_wire()}
        try:
            await self._client.apply(THROUGHPUT_PROFILES, name, body, manager=MANAGER_OPERATOR, subresource="status")
        except NotFound:
            return
        kind = ENTRIES[finding.reason].event
        if kind is not None:
            await post_event(
                self._client,
                Subject(THROUGHPUT_PROFILES, name, item["metadata"]["uid"]),
                kind=kind,
                reason=finding.reason,
                message=finding.message,
                component=MANAGER_OPERATOR,
                at=format_time(float(int(self._clock()))),
            )
