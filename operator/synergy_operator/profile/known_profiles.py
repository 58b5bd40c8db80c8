"""ThroughputProfiles of the cluster: names, checks, which one is valid for a job, and which are deleted."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from pydantic import ValidationError

from synergy_api.names import LABEL_MEASURED_FOR, LABEL_PUBLISHED
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.throughput_profile import ThroughputProfileSpec, ThroughputProfileStatus
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.conditions import VALID, find, no, write, yes
from synergy_operator.profile.curve import first_decrease
from synergy_operator.views.known_profile import KnownProfile, PublishedProfile
from synergy_operator.views.metadata import Key, Object

MOST_PUBLISHED: Final = 2000
"""How many of the ThroughputProfiles that it published the operator keeps."""
_DIGEST_LETTERS: Final = 12


def profile_name(fingerprint: str, digest: str) -> str:
    """Name of a ThroughputProfile: the fingerprint, and the image digest unless the reference fixes it."""
    return f"{fingerprint}-{digest.rpartition(':')[2][:_DIGEST_LETTERS]}" if digest else fingerprint


def fingerprint_of_name(name: str) -> str:
    """The fingerprint in a ThroughputProfile's name."""
    return name.partition("-")[0]


def fixed_image(spec: TrainingJobSpec) -> bool:
    """The image's reference contains a digest, so it can never mean another image."""
    return "@" in str(spec.template["spec"]["containers"][0].get("image"))


def best_known(known: Iterable[KnownProfile], digest: str) -> ThroughputProfileSpec | None:
    """The best profile for an image of this digest. If the digest is unknown (empty), the newest profile."""
    usable = [profile.spec for profile in known if profile.spec is not None]
    fitting = [spec for spec in usable if not digest or spec.image_digest in ("", digest)]
    return max(fitting, key=lambda s: (bool(digest and s.image_digest), s.measured_at, s.image_digest), default=None)


def check_profile(item: Object) -> tuple[ThroughputProfileSpec | None, Finding]:
    """The profile if jobs may use it, otherwise None; and the finding for its condition."""
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
    falls = first_decrease("spec.matrices", profile.matrices)
    return (None, falls) if falls is not None else (profile, say(Reason.PROFILE_USED))


def profile_status(item: Object, finding: Finding, now: float) -> ThroughputProfileStatus | None:
    """The status of a profile with this finding; None if it is unchanged."""
    try:
        old = ThroughputProfileStatus.model_validate(item.get("status") or {}).conditions
    except ValidationError:
        old = []
    before = find(old, VALID)
    if before is not None and (before.reason, before.message) == (finding.reason, finding.message):
        return None
    update = yes(finding) if finding.reason is Reason.PROFILE_USED else no(finding)
    return ThroughputProfileStatus(conditions=write(old, {VALID: update}, item["metadata"].get("generation", 0), now))


def published_profile(item: Object, spec: ThroughputProfileSpec | None) -> PublishedProfile | None:
    """The profile if the operator published it, with its `spec` or None if no job may use it.

    None for a profile that somebody wrote by hand, and for one that is being deleted.
    """
    metadata = item["metadata"]
    labels = metadata.get("labels") or {}
    if labels.get(LABEL_PUBLISHED) != "true" or "deletionTimestamp" in metadata:
        return None
    measured_at = metadata["creationTimestamp"] if spec is None else spec.measured_at
    return PublishedProfile(metadata["name"], metadata["uid"], labels.get(LABEL_MEASURED_FOR, ""), measured_at)


def surplus(
    published: Collection[PublishedProfile], unfinished: Callable[[str], Sequence[Key]]
) -> list[PublishedProfile]:
    """The profiles to delete so that MOST_PUBLISHED stay.

    The namespace for whose jobs most were measured loses one, the oldest, until enough are chosen. So the profiles of a
    namespace with a few programs outlast another's sweep over thousands. A profile stays while a job of its fingerprint
    is not finished: `unfinished` gives these jobs.
    """
    over = len(published) - MOST_PUBLISHED
    if over <= 0:
        return []
    newest_first = sorted(published, key=lambda profile: (profile.measured_at, profile.name), reverse=True)
    unused: dict[str, list[PublishedProfile]] = defaultdict(list)
    for profile in newest_first:
        if not unfinished(fingerprint_of_name(profile.name)):
            unused[profile.namespace].append(profile)
    counts = Counter(profile.namespace for profile in published)
    most = [(-counts[namespace], namespace) for namespace in unused]
    heapq.heapify(most)
    chosen: list[PublishedProfile] = []
    while most and len(chosen) < over:
        count, namespace = most[0]
        chosen.append(unused[namespace].pop())
        if unused[namespace]:
            heapq.heapreplace(most, (count + 1, namespace))
        else:
            heapq.heappop(most)
    return chosen
