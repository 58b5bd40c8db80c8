"""Ten models with made-up matrices, for users without measured ones.

They follow what section 2.1 of Synergy says in words: image and speech models are limited by pre-processing up to 4 to
12 CPUs per GPU and read large data sets; language models need one CPU and 20 GiB. The matrices are those of the
profiler: a CPU curve, and the MinIO model for the memory axis (`synergy_core.profiling`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from synergy_core.model.snapshot import Profile
from synergy_core.profiling.memory_model import MemoryModel
from synergy_core.profiling.sensitivity import sensitivity_matrix
from synergy_simulator.inputs.profiles import GIB, ProfileTable

CPUS = (1, 2, 3, 4, 5, 6, 9, 12, 24)
"""Points per GPU."""
MEMORY_GIB = (20, 62.5, 125, 187.5, 250)
STORAGE_BYTES_PER_S = 128 * 2**20
"""An eighth of a server's 1 GiB/s for each GPU."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model on one GPU. With `saturating_cpus` it is as fast as its GPU, with fewer in proportion to them."""

    step_s: float
    """Seconds of a step at 3 CPUs with all data in memory."""
    saturating_cpus: float
    batch_size: int = 512
    dataset_gib: float = 0.0
    """0: what it reads is too little to matter."""
    samples: int = 1_280_000


MODELS: Mapping[str, Model] = {
    "alexnet": Model(0.6, 9.5, dataset_gib=140),
    "mobilenet": Model(0.7, 4.8, dataset_gib=140),
    "res18": Model(0.64, 7.0, dataset_gib=140),
    "res50": Model(0.78, 3.6, dataset_gib=140),
    "shufflenet": Model(0.62, 9.0, dataset_gib=140),
    "gnmt": Model(0.12, 1.0),
    "lstm": Model(0.011, 1.0),
    "transformer": Model(0.67, 1.0),
    "deepspeech": Model(0.76, 3.0, batch_size=20, dataset_gib=60, samples=280_000),
    "m5": Model(0.6, 6.5, dataset_gib=210, samples=1_100_000),
}


def built_in_profiles(slower: Mapping[str, float] | None = None) -> ProfileTable:
    """Matrices of MODELS; on many GPUs a step takes as long as on one (weak scaling).

    `slower`: by GPU type, how many times as long its GPU takes for a step; all types are alike that are not named.
    """
    times = slower or {}
    made: dict[tuple[str, float, int], Profile] = {}

    def find(model: str, gpu_type: str, gpus: int) -> Profile | None:
        key = model, times.get(gpu_type, 1.0), gpus
        if model in MODELS and key not in made:
            made[key] = matrix(_slower(MODELS[model], key[1]), gpus)
        return made.get(key)

    return ProfileTable(MODELS.keys(), find)


def _slower(model: Model, times: float) -> Model:
    """The model on a slower GPU: fewer CPUs keep it busy, and below that the CPUs are as fast as ever."""
    saturating = model.saturating_cpus / times
    at_three = min(3.0, model.saturating_cpus) / min(3.0, saturating)
    return replace(model, saturating_cpus=saturating, step_s=model.step_s * at_three)


def matrix(model: Model, gpus: int) -> Profile:
    """The sensitivity matrix of the whole job."""
    curve = [min(cpus, model.saturating_cpus) / min(3.0, model.saturating_cpus) / model.step_s for cpus in CPUS]
    reads = (
        MemoryModel(
            dataset_bytes=round(model.dataset_gib * GIB * gpus),
            samples=model.samples * gpus,
            batch_size=model.batch_size * gpus,
            storage_bytes_per_s=float(STORAGE_BYTES_PER_S * gpus),
            process_bytes=0,
        )
        if model.dataset_gib
        else None
    )
    return sensitivity_matrix(
        [cpus * 1000 * gpus for cpus in CPUS], curve, [round(gib * GIB * gpus) for gib in MEMORY_GIB], reads
    )
