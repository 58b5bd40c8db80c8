"""Jobs that ask to be measured, by fingerprint."""

from synergy_operator.profile.deduplication import candidate_of
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key
from synergy_operator.views.profile_candidate import ProfileCandidate


class ProfileCandidates:
    """All candidates. `by_fingerprint` is what a reconcile reads."""

    def __init__(self) -> None:
        self._of: dict[Key, ProfileCandidate] = {}
        self.by_fingerprint: dict[str, dict[Key, ProfileCandidate]] = {}

    def update(self, key: Key, job: JobView | None) -> frozenset[str]:
        """Take over what a job asks for now; None if the job is gone. Return the fingerprints whose jobs this
        affects."""
        old, new = self._of.pop(key, None), candidate_of(job) if job is not None else None
        if old is not None:
            same = self.by_fingerprint[old.fingerprint]
            del same[key]
            if not same:
                del self.by_fingerprint[old.fingerprint]
        if new is not None:
            self._of[key] = new
            self.by_fingerprint.setdefault(new.fingerprint, {})[key] = new
        return frozenset(one.fingerprint for one in (old, new) if one is not None) if old != new else frozenset()
