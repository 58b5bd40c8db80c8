"""A small PyTorch model that trains on the GPU: `python -m synergy_cli.gpu.training MODEL BATCH [DEVICE]`.

It prints `ready` when it has warmed up, begins at a line on its input, then reports finished steps, and ends with its
input. Data is on the device, `cuda` by default: what is measured is the GPU alone.
"""

import importlib
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from synergy_cli.gpu.models import CLASSES, build

WARM_UP_STEPS = 20
SYNCHRONISED_EVERY = 5


def synchronise(torch: Any, device: str) -> None:
    """Wait until the device has done all that it was given; a CPU has already."""
    if device == "cuda":
        torch.cuda.synchronize()


def prepared(torch: Any, name: str, batch: int, device: str) -> tuple[Any, Any, Callable[[], None]]:
    """The model, its optimiser, and what trains it by one step on data that is on the device."""
    torch.manual_seed(0)
    model, inputs_of = build(torch, name)
    model = model.to(device)
    inputs, labels = inputs_of(batch).to(device), torch.randint(CLASSES, (batch,), device=device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss_of(model(inputs), labels).backward()
        optimiser.step()

    return model, optimiser, step


def train(name: str, batch: int, device: str, begin: threading.Event, end: threading.Event) -> None:
    """Warm up, wait for `begin`, train until `end`."""
    torch: Any = importlib.import_module("torch")  # no dependency of ours

    _, _, step = prepared(torch, name, batch, device)
    for _ in range(WARM_UP_STEPS):
        step()
    synchronise(torch, device)
    say(ready=True)
    begin.wait()
    done = 0
    while not end.is_set():
        for _ in range(SYNCHRONISED_EVERY):
            step()
        synchronise(torch, device)
        done += SYNCHRONISED_EVERY
        say(step=done, at=time.monotonic())


def say(**fields: object) -> None:
    """One line for the measuring process."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def listen(begin: threading.Event, end: threading.Event) -> None:
    """The first line begins, the end of the input ends."""
    sys.stdin.readline()
    begin.set()
    sys.stdin.read()
    end.set()


def main() -> None:
    """Train as the command line says."""
    name, batch = sys.argv[1], int(sys.argv[2])
    device = sys.argv[3] if len(sys.argv) > 3 else "cuda"
    begin, end = threading.Event(), threading.Event()
    threading.Thread(target=listen, args=(begin, end), daemon=True).start()
    train(name, batch, device, begin, end)


if __name__ == "__main__":
    main()
