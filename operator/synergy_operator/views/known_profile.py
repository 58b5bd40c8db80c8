"""ThroughputProfiles, as the operator reads them."""

from dataclasses import dataclass

from synergy_api.resources.throughput_profile import ThroughputProfileSpec


@dataclass(frozen=True, slots=True)
class KnownProfile:
    """A ThroughputProfile at one version.

    `spec` is None if no job may use the profile. It still occupies its name.
    """

    name: str
    version: str
    spec: ThroughputProfileSpec | None


@dataclass(frozen=True, slots=True)
class PublishedProfile:
    """A ThroughputProfile that the operator published, and may delete.

    `namespace` is that of the job that was measured, empty if an earlier version published it. `measured_at` is an
    RFC 3339 time in UTC, which sorts as text: that of its creation if no job may use the profile.
    """

    name: str
    uid: str
    namespace: str
    measured_at: str
