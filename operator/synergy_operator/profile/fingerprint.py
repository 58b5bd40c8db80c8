"""What identical jobs have in common: the name under which their profile is shared."""

import hashlib
import json
from typing import Final

from synergy_api.program import program
from synergy_api.training_job import TrainingJobSpec

_LENGTH: Final = 32


def fingerprint(spec: TrainingJobSpec) -> str:
    """Hash of everything in the spec that a job's matrix depends on: what runs (image, command, arguments, environment,
    code that a ConfigMap, a Secret, an image volume or an init container brings) and how its steps are seen, how much
    at once (GPUs, batch size), and what bounds the matrix and how well it is known (data set, resource maximum,
    CPU step, measured steps, or the matrices that were provided)."""
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
        "matrices": [matrix.to_wire() for matrix in profile.matrices] if profile.mode == "Provided" else [],
    }
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
