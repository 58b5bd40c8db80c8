"""Jobs that ask to be measured."""

from dataclasses import dataclass

from synergy_operator.views.metadata import Key


@dataclass(frozen=True, slots=True)
class ProfileCandidate:
    """A job that asks for GPUs to be measured, or has them.

    `gpu_types` are those that it may use; empty means any. Of identical jobs, the one with the lowest `rank` is
    measured.
    """

    key: Key
    fingerprint: str
    gpu_types: frozenset[str]
    rank: tuple[bool, bool, float, Key]

    def measures(self, gpu_type: str) -> bool:
        """The job is going to measure this GPU type, which has no matrix yet."""
        return not self.gpu_types or gpu_type in self.gpu_types
