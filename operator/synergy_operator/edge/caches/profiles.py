"""The ThroughputProfiles that jobs may use, and the conditions of all of them. Any user with access may write one."""

from collections.abc import Callable

from synergy_api.names import MANAGER_OPERATOR
from synergy_api.reasons import ENTRIES
from synergy_api.timestamps import format_time
from synergy_kube import Change, KubeClient, NotFound
from synergy_kube.events import Subject, post_event
from synergy_kube.resources import THROUGHPUT_PROFILES
from synergy_operator.edge.work_queue import WorkQueue
from synergy_operator.profile.known_profiles import check_profile, fingerprint_of_name, profile_status
from synergy_operator.views.known_profile import KnownProfile
from synergy_operator.views.metadata import Object


class ProfileCache:
    """Follows the ThroughputProfiles.

    `known` has them by fingerprint. `on_known` is called with the fingerprint of each profile that may be used.
    """

    def __init__(self, client: KubeClient, clock: Callable[[], float], on_known: Callable[[str], None]) -> None:
        self._client = client
        self._clock = clock
        self._on_known = on_known
        self._items: dict[str, Object] = {}
        self._queue: WorkQueue[str] = WorkQueue(self._write_status, workers=2)
        self.known: dict[str, tuple[KnownProfile, ...]] = {}

    async def run(self) -> None:
        """Write the conditions of profiles until cancelled."""
        await self._queue.run()

    def update(self, change: Change) -> None:
        """A profile was created, changed or deleted."""
        name = change.key[1]
        fingerprint = fingerprint_of_name(name)
        others = tuple(known for known in self.known.pop(fingerprint, ()) if known.name != name)
        self._items.pop(name, None)
        if change.new is None:
            self.known |= {fingerprint: others} if others else {}
            return
        profile = check_profile(change.new)[0]
        self.known[fingerprint] = (*others, KnownProfile(name, str(change.new["metadata"]["resourceVersion"]), profile))
        self._items[name] = change.new
        if profile is not None:
            self._on_known(fingerprint)
        self._queue.add(name)

    async def _write_status(self, name: str) -> None:
        item = self._items.get(name)
        if item is None:
            return
        finding = check_profile(item)[1]
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
