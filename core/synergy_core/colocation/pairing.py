"""Who shares a GPU with whom in a round.

The policy's line is walked as if nobody shared: its head has GPUs of its own, as far as they go. Those behind who allow
it then join one of the head's jobs, so that sharing never takes a GPU from anybody, and is undone when there are GPUs
enough.

* `auto`: along the line, each joins where most is gained: the sum of what all of the GPU's jobs keep of the speed of
  their GPU-proportional shares grows, their CPU and memory being a part of one GPU's share (`team`). Nobody falls below
  its fair share, the GPUs there are for each that is wanted, or the least fraction that its user gave instead. Who
  shared a GPU in the last round is with the same jobs again if that still holds.
* `thesis` (co-location thesis, algorithm 2): the job with the least compute first, to the GPU with the least sum of
  compute, until the predicted speedup (`delta`) falls below 1. Who shares stays together to the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from synergy_core.colocation.delta import delta_of_fractions
from synergy_core.colocation.measurement import LEAST
from synergy_core.colocation.rules import Rules
from synergy_core.colocation.team import Member, member, split
from synergy_core.model import Job, Node, PlanConfig
from synergy_core.pool import Pool

_WORTH = 0.05
"""What sharing must gain to be begun: speeds are not known better."""
_TRIED = 16
"""GPUs that a job is tried on, those with the least compute: the others can hardly be better."""


@dataclass(slots=True)
class Group:
    """Jobs that are to have one GPU of a type."""

    gpu_type: str
    jobs: list[Job]
    nodes: tuple[Node, ...] = ()
    """Where they may have it together."""
    members: tuple[Member, ...] = ()
    kept: float = 1.0
    """Sum of what they keep."""

    @property
    def compute(self) -> float:
        """Sum of their compute."""
        return sum(job.usage[self.gpu_type].compute for job in self.jobs)


class Pairing:
    """For one plan; `units` are the jobs that have one GPU now, by name of each of them."""

    def __init__(
        self, rules: Rules, pools: Sequence[Pool], config: PlanConfig, units: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._rules = rules
        self._pools = {pool.gpu_type: pool for pool in pools}
        self._config = config
        self._units = units
        self._members: dict[tuple[str, str], Member] = {}
        self._fair = 1.0

    def groups(self, line: Sequence[Job], types: Mapping[str, tuple[str, ...]]) -> list[Group]:
        """The groups of more than one; `types` are those that the policy gives jobs."""
        wanted = sum(job.gpus for job in line)
        self._fair = min(1.0, sum(pool.open_gpus[0] for pool in self._pools.values()) / max(1, wanted))
        hosts, behind = self._head(line, types)
        if not hosts or not behind:
            return [group for group in hosts if len(group.jobs) > 1]
        places = {job.name: group for group in hosts for job in group.jobs}
        left = []
        for job in behind:
            partners = [places[name] for name in self._units.get(job.name, ()) if name in places]
            if not (partners and self._join(partners[0], job, worth=0.0)):
                left.append(job)
        if self._config.colocation == "thesis":
            self._algorithm_2(hosts, left)
        else:
            self._best_gains(hosts, left)
        return [group for group in hosts if len(group.jobs) > 1]

    def _head(self, line: Sequence[Job], types: Mapping[str, tuple[str, ...]]) -> tuple[list[Group], list[Job]]:
        """Those with GPUs of their own that could share them, and those that could join, both along the line."""
        free = {gpu_type: pool.open_gpus[0] for gpu_type, pool in self._pools.items()}
        hosts: list[Group] = []
        behind: list[Job] = []
        for job in line:
            may_share = self._rules.may_share(job)
            given = self._given(job, types, free)
            if given is None:
                if may_share:
                    behind.append(job)
                continue
            if self._config.colocation == "thesis" and may_share and self._stays_with(job, hosts):
                continue
            free[given] -= job.gpus
            if may_share and self._rules.types([job]).get(given):
                hosts.append(Group(given, [job]))
        return hosts, behind

    def _stays_with(self, job: Job, hosts: Iterable[Group]) -> bool:
        unit = set(self._units.get(job.name, ()))
        mine = next((group for group in hosts if unit & {other.name for other in group.jobs}), None)
        return mine is not None and self._join(mine, job, worth=0.0)

    def _given(self, job: Job, types: Mapping[str, tuple[str, ...]], free: Mapping[str, int]) -> str | None:
        """The GPU type on which the line's head has GPUs for the job: its present one, the policy's, the freest."""
        allowed = types.get(job.name) or job.gpu_types or tuple(free)
        fitting = [gpu_type for gpu_type in allowed if free.get(gpu_type, 0) >= job.gpus]
        if job.running is not None and job.running.gpu_type in fitting:
            return job.running.gpu_type
        if job.name in types:
            return fitting[0] if fitting else None
        return min(fitting, key=lambda gpu_type: (-free[gpu_type], gpu_type), default=None)

    def _algorithm_2(self, hosts: list[Group], left: list[Job]) -> None:
        def compute(job: Job) -> float:
            return min((usage.compute for usage in job.usage.values()), default=1.0)

        for job in sorted(left, key=lambda job: (compute(job), job.arrival_s, job.name)):
            for group in sorted(hosts, key=lambda group: (group.compute, group.jobs[0].name)):
                grown = self._grown(group, job)
                if grown is not None:
                    if delta_of_fractions([max(LEAST, one.fraction) for one in grown.members]) < 1.0:
                        return
                    _take(group, grown)
                    break

    def _best_gains(self, hosts: list[Group], left: list[Job]) -> None:
        for job in left:
            best: tuple[float, Group, Group] | None = None
            for group in sorted(hosts, key=lambda group: (group.compute, group.jobs[0].name))[:_TRIED]:
                grown = self._grown(group, job)
                if grown is not None and self._bearable(grown):
                    gain = grown.kept - group.kept
                    if gain > _WORTH and (best is None or gain > best[0]):
                        best = (gain, group, grown)
            if best is not None:
                _take(best[1], best[2])

    def _join(self, group: Group, job: Job, *, worth: float) -> bool:
        grown = self._grown(group, job)
        if grown is None:
            return False
        if self._config.colocation == "auto" and not (self._bearable(grown) and grown.kept - group.kept > worth):
            return False
        _take(group, grown)
        return True

    def _grown(self, group: Group, job: Job) -> Group | None:
        """The group with the job, where it may and can be."""
        jobs = [*group.jobs, job]
        gpu_type = group.gpu_type
        nodes = self._rules.types(jobs).get(gpu_type)
        if not nodes:
            return None
        pool = self._pools[gpu_type]
        fractions = self._rules.fractions(jobs, gpu_type)
        members = tuple(self._member(one, pool, told) for one, told in zip(jobs, fractions, strict=True))
        least = pool.least_share
        parts = split(members, least)
        lows = zip(parts, jobs, strict=True)
        if any(part[0] < max(1, job.cpu_millis_min) or part[1] < max(1, job.memory_bytes_min) for part, job in lows):
            return None
        kept = sum(one.kept(part) for one, part in zip(members, parts, strict=True))
        return Group(gpu_type, jobs, nodes, members, kept)

    def _bearable(self, group: Group) -> bool:
        """Whether everybody keeps its fair share, or what its user wants it to."""
        least = self._pools[group.gpu_type].least_share
        parts = split(group.members, least)
        for one, part in zip(group.members, parts, strict=True):
            wanted = one.job.min_throughput_fraction
            if one.kept(part) < (self._fair if wanted is None else wanted) - 1e-9:
                return False
        return True

    def _member(self, job: Job, pool: Pool, fraction: float) -> Member:
        key = (job.name, pool.gpu_type)
        known = self._members.get(key)
        if known is None:
            known = self._members[key] = member(job, pool, fraction, self._config.demand_tolerance)
        return known.keeping(fraction)


def _take(group: Group, grown: Group) -> None:
    group.jobs, group.nodes, group.members, group.kept = grown.jobs, grown.nodes, grown.members, grown.kept
