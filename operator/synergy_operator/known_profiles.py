"""The ThroughputProfiles of the cluster: what has been measured, of which image, and which of it holds for a job."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from synergy_api.throughput_profile import ThroughputProfileSpec
from synergy_api.training_job import TrainingJobSpec

_DIGEST_LETTERS: Final = 12


@dataclass(frozen=True, slots=True)
class KnownProfile:
    """A ThroughputProfile at one version. `spec` is None where no job may use it: then it only has its name."""

    name: str
    version: str
    spec: ThroughputProfileSpec | None


def profile_name(fingerprint: str, digest: str) -> str:
    """Name of a ThroughputProfile: of one spec, and of the image that its name stood for where that is not fixed."""
    return f"{fingerprint}-{digest.rpartition(':')[2][:_DIGEST_LETTERS]}" if digest else fingerprint


def fingerprint_of_name(name: str) -> str:
    """The fingerprint in a ThroughputProfile's name."""
    return name.partition("-")[0]


def fixed_image(spec: TrainingJobSpec) -> bool:
    """Whether the image's reference names a digest, so that it can never stand for another image."""
    return "@" in str(spec.template["spec"]["containers"][0].get("image"))


def best_known(known: Iterable[KnownProfile], digest: str) -> ThroughputProfileSpec | None:
    """What holds for an image of this digest; for one of unknown digest (empty), what was measured last."""
    usable = [profile.spec for profile in known if profile.spec is not None]
    fitting = [spec for spec in usable if not digest or spec.image_digest in ("", digest)]
    return max(fitting, key=lambda s: (bool(digest and s.image_digest), s.measured_at, s.image_digest), default=None)
