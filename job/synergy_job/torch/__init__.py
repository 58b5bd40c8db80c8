"""PyTorch (1.13 or newer): everything that a training script needs to go on bit for bit, in two lines.

    import synergy_job.torch

    state = synergy_job.torch.state("/checkpoints/model.pt", model=model, optimizer=optimizer)
    for inputs, targets in state.iterate(loader):
        ...

Only this package imports PyTorch: `synergy_job` alone does not.
"""

from __future__ import annotations

from synergy_job.torch.loader import ResumableLoader
from synergy_job.torch.training_state import State, state

__all__ = ["ResumableLoader", "State", "state"]
