"""What the example scripts share: options, the state that a checkpoint holds, a line of log now and then."""

import argparse
import os
from typing import Any

from small_network import Network
from synthetic_images import CLASSES, INPUTS

import synergy_job


def options(description: str, device_ms: float, cpu_ms: float) -> argparse.ArgumentParser:
    """The options of every script, with the script's own defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--checkpoint", default="checkpoints", metavar="DIR", help="where the checkpoint is kept")
    parser.add_argument("--device-ms", type=float, default=device_ms, help="time of a step on the (fake) device")
    parser.add_argument("--cpu-ms-per-step", type=float, default=cpu_ms, help="CPU time of a step, all processes")
    parser.add_argument("--gpu-compute", type=float, default=0.0, help="part of the time that the device computes")
    parser.add_argument("--gpu-bandwidth", type=float, default=0.0, help="part of the time that it moves memory")
    parser.add_argument("--gpu-memory-mib", type=int, default=0, help="memory that it takes of the device")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=200, help="steps outside a cluster; inside, the job says")
    parser.add_argument("--log-every", type=int, default=20, metavar="STEPS")
    return parser


class State:
    """The network, the steps it has had, and the file they are kept in."""

    def __init__(self, folder: str) -> None:
        self.network = Network(INPUTS, 32, CLASSES)
        self.step = 0
        self._checkpoint = synergy_job.Checkpoint(os.path.join(folder, "model.ckpt"))

    def save(self, step: int) -> None:
        """Write the checkpoint of `step`."""
        self._checkpoint.write(self.content(step))

    def load(self) -> int | None:
        """Take over the newest checkpoint, if there is one; its step."""
        content = self._checkpoint.read()
        return None if content is None else self.restore(content)

    def content(self, step: int) -> dict[str, Any]:
        """All that training needs to go on after `step`."""
        return {"step": step, "weights": self.network.weights, "momentum": self.network.momentum}

    def restore(self, content: dict[str, Any]) -> int:
        """Take over what `content` gave; its step."""
        self.step = int(content["step"])
        self.network.weights[:] = content["weights"]
        self.network.momentum[:] = content["momentum"]
        return self.step

    def advance(self, loss: float, log_every: int, who: str = "") -> None:
        """One more step is done."""
        self.step += 1
        if self.step % log_every == 0:
            print(f"{who}step {self.step} loss {loss:.4f}", flush=True)
