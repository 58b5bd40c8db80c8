"""Saves or loads a checkpoint of a small model: `python -m synergy_cli.gpu.checkpointing save|load MODEL DEVICE FILE`.

It prints one line of JSON: how long it took, and how many bytes there are. The file is written as `synergy_job` writes
checkpoints: beside its name, onto the disk, and then given its name.
"""

import importlib
import json
import os
import sys
import time
from typing import Any

from synergy_cli.gpu.training import prepared, synchronise
from synergy_job import atomic_file

_BATCH = 16
_STEPS = 3


def save(torch: Any, name: str, device: str, path: str) -> dict[str, float]:
    """Train a little, so that the optimiser has its state, and save."""
    model, optimiser, step = prepared(torch, name, _BATCH, device)
    for _ in range(_STEPS):
        step()
    synchronise(torch, device)
    begun = time.monotonic()
    with atomic_file(path) as file:
        torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict()}, file)
    return {"seconds": time.monotonic() - begun, "bytes": os.path.getsize(path)}


def load(torch: Any, name: str, device: str, path: str, began: float) -> dict[str, float]:
    """Load, and train the first step. Seconds are parts of the process' life, one after the other."""
    imported = time.monotonic()
    model, optimiser, step = prepared(torch, name, _BATCH, device)
    synchronise(torch, device)
    built = time.monotonic()
    state = torch.load(path, map_location=device)
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    synchronise(torch, device)
    loaded = time.monotonic()
    step()
    synchronise(torch, device)
    return {
        "import_seconds": imported - began,
        "build_seconds": built - imported,
        "load_seconds": loaded - built,
        "first_step_seconds": time.monotonic() - loaded,
    }


def main() -> None:
    """Do as the command line says."""
    began = time.monotonic()
    what, name, device, path = sys.argv[1:]
    torch: Any = importlib.import_module("torch")  # no dependency of ours
    told = save(torch, name, device, path) if what == "save" else load(torch, name, device, path, began)
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
