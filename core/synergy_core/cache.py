"""What one plan worked out and the next one may use again.

All of it follows from the nodes, the jobs and what they hold, and is used again only where these are still the same: a
plan is the same with the memory of earlier ones as without, but where an allocation is not found in time
(`policies/allocation/solutions.py`). It saves the work on jobs that go on as they were, which in most rounds are most.
"""

from collections.abc import Sequence
from itertools import groupby

from synergy_core.colocation.kinds.known_pairs import KnownPairs
from synergy_core.model.pool import Pool
from synergy_core.model.resources import Further
from synergy_core.model.snapshot import Job, Node
from synergy_core.model.snapshot.passing import lasts
from synergy_core.policies.allocation.solutions import Solutions
from synergy_core.selection.job_info import JobInfo
from synergy_core.selection.staying.islands import PackedRounds
from synergy_core.throughput.estimates import NO_SPEEDS, Speeds
from synergy_core.throughput.job_class import JobClass
from synergy_core.throughput.job_classes import JobClasses
from synergy_core.throughput.skew import NO_RULES, PackRules


class Memory:
    """Of the plans of one caller, one after the other. All is known still of a job of which only passing fields
    differ (`snapshot.passing`)."""

    def __init__(self, beside: "Memory | None" = None) -> None:
        """For plans of another cluster with the jobs of the one `beside`: what that knows of them is used here too."""
        self._others: JobClasses | None = None if beside is None else beside._classes
        self.pools: list[Pool] = []
        """The nodes of the present plan, by GPU type."""
        self.solutions = Solutions()
        """Allocation matrices of the policies over several GPU types; its budget is the caller's to set."""
        self.pairs = KnownPairs()
        """What jobs keep that share a GPU."""
        self.speeds = Speeds()
        """Of the present plan, on GPU types without a matrix."""
        self.packed = PackedRounds()
        """What the last round gave jobs that stay."""
        self._nodes: tuple[Node, ...] = ()
        self._tolerance = 0.0
        self._rules = NO_RULES
        self._classes: JobClasses = JobClasses((), 0.0)
        self._kept: list[JobClass] = []
        self._infos: dict[str, JobInfo] = {}
        self._before: dict[str, JobInfo] = {}

    def begin(self, nodes: tuple[Node, ...], tolerance: float, rules: PackRules = NO_RULES) -> None:
        """Begin a plan: what the last plan did not look at is forgotten. If the nodes have changed, only what follows
        from the jobs' matrices is kept."""
        self._before, self._infos, self._kept = self._infos, {}, []
        if (nodes, tolerance) != (self._nodes, self._tolerance):
            self.pools = _pools(nodes)
            self._kept = self._classes_for(self.pools[0].further if self.pools else (), tolerance)
            self._nodes, self._tolerance = nodes, tolerance
            self._before = {}
        if rules != self._rules:
            self._rules, self._before = rules, {}

    def _classes_for(self, further: Further, tolerance: float) -> list[JobClass]:
        """Classes to keep until the jobs of the present plan are known."""
        if self._classes.serves(further, tolerance):
            return self._classes.on_other_pools()
        self._classes = JobClasses(further, tolerance, self._others)
        return []

    def info(self, job: Job) -> JobInfo:
        """What is known of a job of the present plan: always the same object."""
        found = self._infos.get(job.name)
        if found is None:
            found = self._infos[job.name] = self._known(job) or JobInfo(
                job,
                self.pools,
                self._tolerance,
                self._classes,
                rules=self._rules,
                speeds=self.speeds.of.get(job.name, NO_SPEEDS),
            )
        return found

    def _known(self, job: Job) -> JobInfo | None:
        """What the last plan knew of the job, where that holds still."""
        found = self._before.get(job.name)
        if found is None or found.speeds != self.speeds.of.get(job.name, NO_SPEEDS):
            return None
        if found.running != job.running:  # a simulated job is one object that changes, so the jobs say nothing of it
            return None
        if found.job is job:
            return found
        return found.later(job) if lasts(found.job, job) else None


def _pools(nodes: Sequence[Node]) -> list[Pool]:
    def by_type(node: Node) -> str:
        return node.gpu_type

    return [Pool(gpu_type, list(group)) for gpu_type, group in groupby(sorted(nodes, key=by_type), key=by_type)]
