"""Changes of the image behind a reference: measurements of the old image are no longer valid.

The operator asks no registry. It learns an image's digest from the pods that ran it. It therefore notices a change when
the new image first runs, and the change counts from the next run on.
"""

from collections.abc import Iterable

from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import ProfileStatus, TrainingJobSpec
from synergy_operator.profile.known_profiles import fixed_image
from synergy_operator.run.allocation import open_allocation
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView


def with_seen_digest(observed: Observed, spec: TrainingJobSpec, profile: ProfileStatus) -> ProfileStatus:
    """A complete profile with the image digest that the open run's workers show."""
    allocation = open_allocation(observed.job.status)
    if allocation is None or allocation.purpose != "Train" or profile.state != "Complete" or not _may_change(spec):
        return profile
    shown = (pod.image_digest for pod in observed.pods_of(allocation.run) if pod.image_digest)
    seen = next(shown, "")
    if not seen:
        return profile
    if not profile.image_digest:
        return profile.model_copy(update={"image_digest": seen})
    return profile.model_copy(update={"running_digest": "" if seen == profile.image_digest else seen})


def outdated(profile: ProfileStatus) -> Finding | None:
    """Why the profile is no longer valid; None if it is."""
    if not profile.running_digest:
        return None
    return say(Reason.IMAGE_CHANGED, old=profile.image_digest, new=profile.running_digest)


def of_newest_image(
    profile: ProfileStatus, spec: TrainingJobSpec, pods: Iterable[PodView], *, ending: bool
) -> ProfileStatus:
    """The profile of a series, started anew if its newest pod ran another image than the points so far.

    While the run is `ending`, nothing is started anew: its pods are being deleted, and the newest may be gone already.
    """
    shown = [(pod.created_at, pod.name, _digest(spec, pod)) for pod in pods]
    newest = max(((at, name, digest) for at, name, digest in shown if digest), default=(0.0, "", ""))[2]
    if not newest or newest == profile.image_digest:
        return profile
    if not profile.image_digest:
        return profile.model_copy(update={"image_digest": newest})
    if ending:
        return profile
    return ProfileStatus(
        state="Measuring", fingerprint=profile.fingerprint, image_digest=newest, request=profile.request
    )


def holds_for(profile: ProfileStatus, spec: TrainingJobSpec, pod: PodView) -> bool:
    """The profile pod measured the profile's image."""
    return _digest(spec, pod) in ("", profile.image_digest)


def _digest(spec: TrainingJobSpec, pod: PodView) -> str:
    return pod.image_digest if _may_change(spec) else ""


def _may_change(spec: TrainingJobSpec) -> bool:
    return spec.profile.mode in ("Auto", "Sweep") and not fixed_image(spec)
