"""Which jobs may share one GPU, and what each keeps of its speed.

Jobs may share a GPU if all of this holds:

* each needs one GPU, allows sharing, and may be preempted;
* they are of one tenant, unless all of them allow more;
* they are no more than the node's replicas;
* their GPU memory, as each states it, fits: all together into the GPU's, and each into what MPS leaves a client;
* the node states its GPU memory, and each job its usage on the type;
* no job's speed on the type is only estimated: such a job has its whole share there.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property

from synergy_core.colocation.predictors.by_models import CorrectedByModels
from synergy_core.colocation.predictors.generic import EFFECTS, SUMS
from synergy_core.model.config import THESIS_MODES, PlanConfig
from synergy_core.model.measurement import Observation, Predictor
from synergy_core.model.snapshot import BesideReference, Job, Node
from synergy_core.model.usage import Usage
from synergy_core.throughput.threads import ceiling, least_percent, measured_with

_SAME = 1e-9
_HELD_UP = 0.95
"""A job at this part of what its threads allow is held up by them."""
_LAST = 3
"""Of each job so many of its newest measurements correct the predictions: more add little."""

IsEstimated = Callable[[str, str], bool]
"""Whether the speed of a job, by name, on a GPU type is an estimate."""


def never(job: str, gpu_type: str) -> bool:
    """No speed is an estimate."""
    return False


class Rules:
    """For one plan."""

    def __init__(
        self,
        nodes: Sequence[Node],
        jobs: Sequence[Job],
        config: PlanConfig,
        now: float,
        is_estimated: IsEstimated = never,
    ) -> None:
        self._nodes: dict[str, list[Node]] = {}
        for node in nodes:
            if node.replicas > 1 and node.gpu_memory_bytes > 0:
                self._nodes.setdefault(node.gpu_type, []).append(node)
        self._config = config
        self._now = now
        self._is_estimated = is_estimated
        self._jobs = jobs
        self._predictors: dict[str, Predictor] = {}
        self._told: dict[tuple[str, frozenset[str]], tuple[float, ...]] = {}

    @property
    def basis(self) -> dict[str, object]:
        """By GPU type, all that predictions follow from beside the jobs' usages and `corrections`."""
        return {
            gpu_type: (self._base(gpu_type), [] if gpu_type in self._of_models else self._observations(gpu_type))
            for gpu_type in self._nodes
        }

    def corrections(self, job: Job) -> tuple[Hashable, ...]:
        """For each of `shared_types`, what measurements correct for the pairs of this job's model; None where they
        correct nothing, or the pairs of all models."""
        return tuple(
            self._of_models[gpu_type].get(job.usage[gpu_type].model) if gpu_type in self._of_models else None
            for gpu_type in self.shared_types(job)
        )

    @cached_property
    def _of_models(self) -> dict[str, Mapping[str, Hashable]]:
        """`CorrectedByModels.corrections`, for the GPU types with such a predictor."""
        return {
            gpu_type: base.corrections(self._observations(gpu_type))
            for gpu_type in self._nodes
            if isinstance(base := self._base(gpu_type), CorrectedByModels)
        }

    @property
    def anywhere(self) -> bool:
        """Whether any GPU may be shared at all."""
        return bool(self._nodes)

    def shared_nodes(self, gpu_type: str) -> Sequence[Node]:
        """The nodes of a type whose GPUs may be shared."""
        return self._nodes.get(gpu_type, ())

    def may_share(self, job: Job) -> bool:
        """The job could share its GPU with another."""
        return (
            job.sharing
            and job.gpus == 1
            and job.purpose == "train"
            and job.preemptible
            and not job.further_min
            and not any(profile.further for profile in job.profiles.values())
        )

    def shares_on(self, job: Job, gpu_type: str) -> bool:
        """Whether a job that may share does so on GPUs of the type."""
        allowed = not job.gpu_types or gpu_type in job.gpu_types
        return allowed and gpu_type in job.usage and not self._is_estimated(job.name, gpu_type)

    def shared_types(self, job: Job) -> tuple[str, ...]:
        """The GPU types on which it does."""
        return tuple(gpu_type for gpu_type in sorted(self._nodes) if self.shares_on(job, gpu_type))

    def types(self, members: Sequence[Job]) -> dict[str, tuple[Node, ...]]:
        """By GPU type, the nodes on which the members may have a GPU together."""
        if not all(self.may_share(job) for job in members) or not _tenants_agree(members):
            return {}
        found = {}
        for gpu_type, nodes in self._nodes.items():
            if all(self.shares_on(job, gpu_type) for job in members):
                each = [job.usage[gpu_type].memory_bytes for job in members]
                need, most = sum(each), max(each)
                fitting = [
                    node
                    for node in nodes
                    if node.replicas >= len(members)
                    and node.gpu_memory_bytes >= need
                    and (node.client_memory_bytes >= most or not node.client_memory_bytes)
                    and all(job.nodes is None or node.name in job.nodes for job in members)
                ]
                if fitting:
                    found[gpu_type] = tuple(fitting)
        return found

    def fractions(self, members: Sequence[Job], gpu_type: str) -> tuple[float, ...]:
        """What each keeps of its speed, at most all: as was measured of just these not long ago, else as predicted."""
        ordered = sorted(members, key=lambda job: job.name)
        key = (gpu_type, frozenset(job.name for job in members))
        if key not in self._told:
            told = self.predicted(ordered, gpu_type)
            measured = [self.measured(job, ordered, gpu_type) for job in ordered]
            self._told[key] = tuple(
                guess if seen is None else min(1.0, seen) for guess, seen in zip(told, measured, strict=True)
            )
        by_name = dict(zip([job.name for job in ordered], self._told[key], strict=True))
        return tuple(by_name[job.name] for job in members)

    def predicted(self, members: Sequence[Job], gpu_type: str) -> tuple[float, ...]:
        """What each keeps of the best speed that is known of it, at most what its threads are enough for, by what their
        usages tell."""
        usages = [job.usage[gpu_type] for job in members]
        percent = least_percent(self.types(members).get(gpu_type, ()))
        guesses = zip(members, usages, self.predictor(gpu_type).fractions(usages), strict=True)
        return tuple(
            min(1.0, min(ceiling(usage, percent), guess) / measured_with(job, gpu_type, percent))
            for job, usage, guess in guesses
        )

    def measured(self, job: Job, members: Sequence[Job], gpu_type: str) -> float | None:
        """What was measured of the job with just these others not long ago."""
        partners = tuple(other.name for other in members if other is not job)
        for one in reversed(job.shared):
            if one.gpu_type == gpu_type and one.partners == partners:
                return one.fraction if self._now - one.at_s <= self._config.sharing_retry_s else None
        return None

    def predictor(self, gpu_type: str) -> Predictor:
        """Of the type, corrected by what was measured of these jobs."""
        if gpu_type not in self._predictors:
            self._predictors[gpu_type] = self._base(gpu_type).corrected(self._observations(gpu_type))
        return self._predictors[gpu_type]

    def _base(self, gpu_type: str) -> Predictor:
        generic: Predictor = SUMS if self._config.colocation in THESIS_MODES else EFFECTS
        return self._config.predictors.get(gpu_type) or generic

    def _observations(self, gpu_type: str) -> list[Observation]:
        """The measurements, without those of jobs that their threads limited: these say nothing about partners."""
        percent = least_percent(self._nodes.get(gpu_type, ()))
        found = []
        for job in sorted(self._jobs, key=lambda job: job.name):
            if gpu_type not in job.usage:
                continue
            known = measured_with(job, gpu_type, percent)
            held_up = _HELD_UP * ceiling(job.usage[gpu_type], percent)
            found += [
                Observation(job.usage[gpu_type], one.usages, one.fraction * known)
                for one in job.shared[-_LAST:]
                if one.gpu_type == gpu_type and one.usages and (percent == 100 or one.fraction * known < held_up)
            ]
            for pair in job.beside_references:
                if pair.gpu_type == gpu_type:
                    found += _both(job.usage[gpu_type], pair, known, percent)
        return found


def _both(usage: Usage, pair: BesideReference, known: float, percent: int) -> list[Observation]:
    """Of the job beside a reference and of the reference beside it, but for those that their threads limited."""
    sides = ((usage, pair.usage, pair.kept * known), (pair.usage, usage, pair.reference_kept))
    return [
        Observation(own, (other,), kept)
        for own, other, kept in sides
        if percent == 100 or kept < _HELD_UP * ceiling(own, percent)
    ]


def _tenants_agree(members: Sequence[Job]) -> bool:
    return len({job.tenant for job in members}) == 1 or all(job.sharing_across_tenants for job in members)
