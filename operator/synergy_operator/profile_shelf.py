"""The ThroughputProfiles that jobs may use, and what is said of those that they may not: anybody may write one."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from synergy_api.names import MANAGER_OPERATOR
from synergy_api.reasons import ENTRIES, Finding, Reason, say
from synergy_api.throughput_profile import ThroughputProfileSpec, ThroughputProfileStatus
from synergy_api.timestamps import format_time
from synergy_kube import Change, KubeClient, NotFound
from synergy_kube.events import Subject, post_event
from synergy_kube.resources import THROUGHPUT_PROFILES
from synergy_operator.conditions import VALID, find, no, write, yes
from synergy_operator.known_profiles import KnownProfile, fingerprint_of_name, profile_name
from synergy_operator.validation import falling
from synergy_operator.work_queue import WorkQueue

Object = Mapping[str, Any]


class ProfileShelf:
    """Follows the profiles. `on_known` is told the fingerprint of each that may be used; `known` has them by it."""

    def __init__(self, client: KubeClient, clock: Callable[[], float], on_known: Callable[[str], None]) -> None:
        self._client = client
        self._clock = clock
        self._on_known = on_known
        self._items: dict[str, Object] = {}
        self._queue: WorkQueue[str] = WorkQueue(self._say, workers=2)
        self.known: dict[str, tuple[KnownProfile, ...]] = {}

    async def run(self) -> None:
        """Write what is to be said of the profiles, until cancelled."""
        await self._queue.run()

    def take(self, change: Change) -> None:
        """A profile came, changed or went."""
        name = change.key[1]
        mark = fingerprint_of_name(name)
        others = tuple(known for known in self.known.pop(mark, ()) if known.name != name)
        self._items.pop(name, None)
        if change.new is None:
            self.known |= {mark: others} if others else {}
            return
        profile = judge(change.new)[0]
        self.known[mark] = (*others, KnownProfile(name, str(change.new["metadata"]["resourceVersion"]), profile))
        self._items[name] = change.new
        if profile is not None:
            self._on_known(mark)
        self._queue.add(name)

    async def _say(self, name: str) -> None:
        item = self._items.get(name)
        if item is None:
            return
        finding = judge(item)[1]
        status = said(item, finding, self._clock())
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


def judge(item: Object) -> tuple[ThroughputProfileSpec | None, Finding]:
    """The profile if jobs may use it, and what is said of it."""
    name = str(item["metadata"]["name"])
    try:
        profile = ThroughputProfileSpec.model_validate(item.get("spec") or {})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in ("spec", *first["loc"]))
        return None, say(Reason.INVALID_PROFILE, problem=f"{field}: {first['msg']}")
    wanted = profile_name(profile.fingerprint, profile.image_digest)
    if name != wanted:
        return None, say(Reason.FINGERPRINT_DIFFERS, name=wanted)
    falls = falling("spec.matrices", profile.matrices)
    return (None, falls) if falls is not None else (profile, say(Reason.PROFILE_USED))


def said(item: Object, finding: Finding, now: float) -> ThroughputProfileStatus | None:
    """The profile's status; None where it says so already."""
    try:
        old = ThroughputProfileStatus.model_validate(item.get("status") or {}).conditions
    except ValidationError:
        old = []
    before = find(old, VALID)
    if before is not None and (before.reason, before.message) == (finding.reason, finding.message):
        return None
    verdict = yes(finding) if finding.reason is Reason.PROFILE_USED else no(finding)
    return ThroughputProfileStatus(conditions=write(old, {VALID: verdict}, item["metadata"].get("generation", 0), now))
