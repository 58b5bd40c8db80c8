"""What a reconcile sees of the jobs that a job waits for."""

from collections.abc import Callable, Iterator
from typing import Any

from synergy_operator.job.dependencies import find_cycle, named_by
from synergy_operator.views.job import JobView


def jobs_before(job: JobView, get: Callable[[str], JobView | None]) -> dict[str, Any]:
    """The fields of Observed on them, worked out anew. `get` finds a job of its namespace by name."""

    def named(name: str) -> Iterator[str]:
        other = get(name)
        return iter(()) if other is None else named_by(other)

    phases = {name: other.status.phase or "" for name in named_by(job) if (other := get(name)) is not None}
    return {"named_phases": phases, "cycle": find_cycle(job, named)}
