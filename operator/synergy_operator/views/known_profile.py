"""ThroughputProfiles as the operator reads them."""

from dataclasses import dataclass

from synergy_api.throughput_profile import ThroughputProfileSpec


@dataclass(frozen=True, slots=True)
class KnownProfile:
    """A ThroughputProfile at one version. `spec` is None where no job may use it: then it only has its name."""

    name: str
    version: str
    spec: ThroughputProfileSpec | None
