"""The fingerprint that identical jobs have in common, under which their profile is shared."""

import hashlib
import json
from typing import Final

from synergy_api.program import program
from synergy_api.resources.training_job import TrainingJobSpec

_LENGTH: Final = 32


def fingerprint(spec: TrainingJobSpec) -> str:
    """Hash of everything in the spec that a job's matrix depends on.

    - What runs: image, command, arguments, environment, and code from ConfigMaps, Secrets, image volumes and init
      containers. How its steps are observed.
    - How much of it runs at once: GPUs and batch size.
    - What bounds the matrix, and how precise it is: data set, resource maximum, CPU step, measured steps, or the
      matrices that the user provided.
    - That kernels are looked at one by one, if the user wants it.
    """
    profile = spec.profile
    parts = {
        **program(spec.template),
        "gpus": spec.gpus,
        "gpusPerWorker": spec.gpus_per_worker,
        "batchSize": spec.batch_size,
        "throughput": spec.throughput.to_wire() if spec.throughput else None,
        "dataset": spec.dataset.to_wire() if spec.dataset else None,
        "max": spec.resources.max.to_wire(),
        "cpuStep": profile.cpu_step,
        "steps": [profile.warmup_steps, profile.steps],
        "mode": profile.mode,
        **({"counters": profile.counters} if profile.counters == "Nsight" else {}),
        "matrices": [matrix.to_wire() for matrix in profile.matrices] if profile.mode == "Provided" else [],
    }
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
