"""Jobs that all differ and may share a GPU with each other, the same for the same seed."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement

from synergy_cli.bench.workload import TYPES
from synergy_core.colocation.predictors.estimator import Estimator
from synergy_core.colocation.predictors.references import References
from synergy_core.model.measurement import Predictor, SharedMeasurement
from synergy_core.model.snapshot import BesideReference, Job, Node, Profile, Shared, Snapshot
from synergy_core.model.usage import Usage

_GIB = 2**30
_GPUS, _CPU, _MEMORY = 4, 16000, 256 * _GIB
_JOBS_FOR_A_GPU = 2
"""A job's fair share is half a GPU, so most pairs help."""
_NOISE = 0.05
"""Standard deviation of a measured fraction."""


@dataclass(slots=True)
class PairsWorkload:
    """Jobs, each of a model of its own, on some GPU types with reference jobs."""

    types: int
    references: int
    """On each GPU type, all of different models."""
    measured: int
    """Beside so many of them jobs were measured, on each GPU type; 0: none was."""
    seed: int
    _rng: random.Random = field(init=False)
    _usages: Mapping[str, tuple[Usage, ...]] = field(init=False)
    """Of the references, by GPU type."""
    _jobs: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)  # noqa: S311 - a workload, not a secret
        self._usages = {
            gpu_type: tuple(self._usage(f"reference-{index}", "") for index in range(self.references))
            for gpu_type in TYPES[: self.types]
        }

    def estimators(self) -> dict[str, Predictor]:
        """By GPU type, a model that was fitted to all pairs of the references."""
        return {gpu_type: Estimator(References.measured(self._pairs(of))) for gpu_type, of in self._usages.items()}

    def snapshot(self, jobs: int) -> Snapshot:
        """A cluster with so many waiting jobs, and nodes of 4 GPUs that two jobs may share: a GPU for each two jobs."""
        nodes = -(-jobs // (_JOBS_FOR_A_GPU * _GPUS * self.types))
        return Snapshot(
            nodes=tuple(
                Node(
                    name=f"{gpu_type}-{index}",
                    gpu_type=gpu_type,
                    gpus=_GPUS,
                    cpu_millis=_CPU,
                    memory_bytes=_MEMORY,
                    replicas=2,
                    gpu_memory_bytes=16 * _GIB,
                )
                for gpu_type in self._usages
                for index in range(nodes)
            ),
            jobs=tuple(self._job() for _ in range(jobs)),
        )

    def with_measurement(self, snapshot: Snapshot) -> Snapshot:
        """The same after the first job was measured beside the second, on one GPU type."""
        first, second, *others = snapshot.jobs
        gpu_type = next(iter(self._usages))
        own, partner = first.usage[gpu_type], second.usage[gpu_type]
        seen = Shared(
            gpu_type=gpu_type,
            partners=(second.name,),
            usages=(partner,),
            fraction=self._kept(own, partner),
            at_s=snapshot.now,
        )
        return replace(snapshot, jobs=(replace(first, shared=(*first.shared, seen)), second, *others))

    def with_job(self, snapshot: Snapshot, *, measured: bool) -> Snapshot:
        """The same with a job more, that was measured beside references or was not.

        It is older than the others: of more jobs than have pairs in a plan, the oldest have.
        """
        job = replace(self._job(), arrival_s=0.0)
        return replace(snapshot, jobs=(*snapshot.jobs, job if measured else replace(job, beside_references=())))

    def _job(self) -> Job:
        number = self._jobs = self._jobs + 1
        usages = {gpu_type: self._usage(f"model-{number}", f"data-{number}") for gpu_type in self._usages}
        return Job(
            name=f"j{number:05}",
            gpus=1,
            arrival_s=float(number),
            sharing=True,
            steps_total=1_000_000,
            profiles={gpu_type: self._profile() for gpu_type in self._usages},
            usage=usages,
            beside_references=tuple(
                BesideReference(
                    gpu_type=gpu_type,
                    usage=reference,
                    kept=self._kept(own, reference),
                    reference_kept=self._kept(reference, own),
                )
                for gpu_type, own in usages.items()
                for reference in self._rng.sample(self._usages[gpu_type], self.measured)
            ),
        )

    def _usage(self, model: str, configuration: str) -> Usage:
        return Usage(
            compute=self._rng.uniform(0.1, 0.9),
            bandwidth=self._rng.uniform(0.1, 0.6),
            memory_bytes=self._rng.randint(1, 5) * _GIB,
            model=model,
            configuration=configuration,
        )

    def _profile(self) -> Profile:
        """CPU sets the pace below some number of CPUs."""
        best, knee = self._rng.uniform(2, 20), self._rng.uniform(500, 6000)
        cpu, memory = (1000, 2000, 4000, 8000), (4 * _GIB, 16 * _GIB, 32 * _GIB)
        speed = tuple((best * min(1.0, millis / knee),) * len(memory) for millis in cpu)
        return Profile(cpu_millis=cpu, memory_bytes=memory, steps_per_s=speed)

    def _pairs(self, usages: tuple[Usage, ...]) -> list[SharedMeasurement]:
        return [
            SharedMeasurement((one, other), (self._kept(one, other), self._kept(other, one)))
            for one, other in combinations_with_replacement(usages, 2)
        ]

    def _kept(self, own: Usage, partner: Usage) -> float:
        """Less, the more the two need of the GPU together."""
        excess = max(0.0, own.compute + partner.compute - 1.0)
        kept = 1.0 - 0.3 * own.compute * partner.compute - 0.15 * excess
        return min(1.0, max(0.1, self._rng.gauss(kept, _NOISE)))
