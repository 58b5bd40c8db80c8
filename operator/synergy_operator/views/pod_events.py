"""What the caches know of a job's pods and profile Jobs beyond the objects themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from synergy_operator.views.pod import PodView


@dataclass(frozen=True, slots=True)
class PodWarning:
    """The newest warning event of an object: `word` and `text` are empty where it has none. `heard_at` is Unix time."""

    word: str
    text: str
    read_at: float


@dataclass(frozen=True, slots=True)
class PodEvents:
    """Of one job: `complaints` by the uid of the pod or Job they are about, `departed` the pods of its newest run that
    ended and are gone, by name."""

    warnings: Mapping[str, PodWarning] = field(default_factory=dict)
    deleted_pods: Mapping[str, PodView] = field(default_factory=dict)
