"""Jobs that ask to be measured."""

from dataclasses import dataclass

from synergy_operator.views.metadata import Key


@dataclass(frozen=True, slots=True)
class ProfileCandidate:
    """A job that asks for a place to be measured, or has one. `gpu_types` are those it may use, empty means any; of two
    identical jobs the one with the lower `rank` is measured."""

    key: Key
    fingerprint: str
    gpu_types: frozenset[str]
    rank: tuple[bool, bool, float, Key]

    def measures(self, gpu_type: str) -> bool:
        """Whether it is going to measure a type that has no matrix yet."""
        return not self.gpu_types or gpu_type in self.gpu_types
