"""Which jobs share a GPU in a round.

The policy's order is walked as if no job shared: the head of the queue has GPUs of its own, as far as they go. Jobs
below that allow it then join a job of the head. So sharing never takes a GPU from a job, and ends when there are enough
GPUs.

* `auto`: pairs that the policy has made itself stay (`combinations`). Then, in the order of the queue, each job joins
  where most is gained: the sum of what all jobs of the GPU keep of the speed of their GPU-proportional shares, their
  CPU and memory being a part of one GPU's share (`group`). No job falls below its fair share, the GPUs there are for
  each GPU that is wanted, or the least fraction that its user gave instead. Jobs that shared a GPU in the last round
  share it again if that still holds.
* `thesis` (co-location thesis, algorithm 2): the job with the least compute first, to the GPU with the least sum of
  compute, until the predicted speedup (`delta`, equation 4.1) falls below 1. Jobs that share stay together to the end.
  Where the iteration time of a job is not known, delta is computed from the fractions alone (`Candidate.by_fractions`).
* `thesis-fractions`: the same with delta from the fractions alone, always.
"""

from collections.abc import Iterable, Mapping, Sequence

from synergy_core.colocation.delta import delta, delta_of_fractions
from synergy_core.colocation.grouping import WORTH, Candidate, Grouping
from synergy_core.model.config import THESIS_MODES, PlanConfig
from synergy_core.model.measurement import LEAST
from synergy_core.model.snapshot import Job

_TRIED = 16
"""GPUs that a job is tried on, those with the least compute: the others can hardly be better."""


class Pairing:
    """For one plan; `units` are the jobs that have one GPU now, by name of each of them."""

    def __init__(self, grouping: Grouping, config: PlanConfig, units: Mapping[str, tuple[str, ...]]) -> None:
        self._grouping = grouping
        self._rules = grouping.rules
        self._pools = grouping.pools
        self._config = config
        self._units = units
        self._by_thesis = config.colocation in THESIS_MODES

    def groups(
        self, line: Sequence[Job], types: Mapping[str, tuple[str, ...]], chosen: Sequence[Candidate] = ()
    ) -> list[Candidate]:
        """The groups of more than one job; `types` are what the policy gives jobs, `chosen` pairs that it made."""
        hosts, behind = self._head(line, types, chosen)
        if not hosts or not behind:
            return [group for group in hosts if len(group.jobs) > 1]
        places = {job.name: group for group in hosts for job in group.jobs}
        left = []
        for job in behind:
            partners = [places[name] for name in self._units.get(job.name, ()) if name in places]
            if not (partners and self._join(partners[0], job)):
                left.append(job)
        if self._by_thesis:
            self._algorithm_2(hosts, left)
        else:
            self._best_gains(hosts, left)
        return [group for group in hosts if len(group.jobs) > 1]

    def _head(
        self, line: Sequence[Job], types: Mapping[str, tuple[str, ...]], chosen: Sequence[Candidate]
    ) -> tuple[list[Candidate], list[Job]]:
        """Jobs with GPUs of their own that they could share, and jobs that could join, both in queue order."""
        free = {gpu_type: pool.open_gpus[0] for gpu_type, pool in self._pools.items()}
        hosts: list[Candidate] = []
        behind: list[Job] = []
        paired = {job.name: group for group in chosen for job in group.jobs}
        for job in line:
            group = paired.get(job.name)
            if group is not None:
                if all(group is not one for one in hosts):
                    hosts.append(group)
                    free[group.gpu_type] -= 1
                continue
            may_share = self._rules.may_share(job)
            given = self._given(job, types, free)
            if given is None:
                if may_share:
                    behind.append(job)
                continue
            if self._by_thesis and may_share and self._stays_with(job, hosts):
                continue
            free[given] -= job.gpus
            if may_share and self._rules.types([job]).get(given):
                hosts.append(Candidate(given, [job], each=(self._grouping.alone(job, given),)))
        return hosts, behind

    def _stays_with(self, job: Job, hosts: Iterable[Candidate]) -> bool:
        unit = set(self._units.get(job.name, ()))
        mine = next((group for group in hosts if unit & {other.name for other in group.jobs}), None)
        return mine is not None and self._join(mine, job)

    def _given(self, job: Job, types: Mapping[str, tuple[str, ...]], free: Mapping[str, int]) -> str | None:
        """The GPU type on which the head of the queue has GPUs for it: its present one, the policy's, the freest."""
        allowed = types.get(job.name) or job.gpu_types or tuple(free)
        fitting = [gpu_type for gpu_type in allowed if free.get(gpu_type, 0) >= job.gpus]
        if job.running is not None and job.running.gpu_type in fitting:
            return job.running.gpu_type
        if job.name in types:
            return fitting[0] if fitting else None
        return min(fitting, key=lambda gpu_type: (-free[gpu_type], gpu_type), default=None)

    def _algorithm_2(self, hosts: list[Candidate], left: list[Job]) -> None:
        def compute(job: Job) -> float:
            return min((usage.compute for usage in job.usage.values()), default=1.0)

        for job in sorted(left, key=lambda job: (compute(job), job.arrival_s, job.name)):
            for group in sorted(hosts, key=lambda group: (group.compute, group.jobs[0].name)):
                grown = self._grown(group, job)
                if grown is not None:
                    if self._delta(grown) < 1.0:
                        return
                    group.take(grown)
                    break

    def _delta(self, group: Candidate) -> float:
        """Equation 4.1 for the group; an iteration alone lasts as long as at the job's best speed, of which the
        fractions are parts."""
        fractions = [max(LEAST, one.fraction) for one in group.members]
        if group.by_fractions or self._config.colocation == "thesis-fractions":
            return delta_of_fractions(fractions)
        alone_s = [1.0 / one.best for one in group.members]
        return delta(alone_s, [t / fraction for t, fraction in zip(alone_s, fractions, strict=True)])

    def _best_gains(self, hosts: list[Candidate], left: list[Job]) -> None:
        for job in left:
            best: tuple[float, Candidate, Candidate] | None = None
            for group in sorted(hosts, key=lambda group: (group.compute, group.jobs[0].name))[:_TRIED]:
                grown = self._grown(group, job)
                if grown is not None and self._grouping.bearable(grown):
                    gain = grown.kept - group.kept
                    if gain > WORTH and (best is None or gain > best[0]):
                        best = (gain, group, grown)
            if best is not None:
                best[1].take(best[2])

    def _join(self, group: Candidate, job: Job) -> bool:
        """Let a job go on with its partners. In mode `auto` only while they gain by it and each keeps enough."""
        grown = self._grown(group, job)
        if grown is None:
            return False
        if self._config.colocation == "auto" and not (self._grouping.bearable(grown) and grown.kept > group.kept):
            return False
        group.take(grown)
        return True

    def _grown(self, group: Candidate, job: Job) -> Candidate | None:
        """The group with the job, where it may and can be."""
        return self._grouping.together([*group.jobs, job], group.gpu_type)
