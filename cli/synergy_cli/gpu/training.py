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

MODELS = ("mlp", "cnn", "lstm", "transformer")
WARM_UP_STEPS = 20
SYNCHRONISED_EVERY = 5
_CLASSES, _LENGTH, _WIDTH = 10, 64, 256


def build(torch: Any, name: str) -> tuple[Any, Callable[[int], Any]]:
    """The model, and a batch of inputs of so many samples."""
    nn = torch.nn
    if name == "mlp":
        layers = [nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, _CLASSES)]
        return nn.Sequential(*layers), lambda batch: torch.randn(batch, 784)
    if name == "cnn":
        layers = []
        for before, after in ((3, 64), (64, 128), (128, 256)):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Flatten(), nn.Linear(256 * 16, _CLASSES)]
        return nn.Sequential(*layers), lambda batch: torch.randn(batch, 3, 32, 32)
    if name == "lstm":
        return _Last(torch, nn.LSTM(_WIDTH, _WIDTH, 2, batch_first=True)), lambda b: torch.randn(b, _LENGTH, _WIDTH)
    if name == "transformer":
        layer = nn.TransformerEncoderLayer(_WIDTH, 4, 4 * _WIDTH, batch_first=True)
        return _Last(torch, nn.TransformerEncoder(layer, 4)), lambda b: torch.randn(b, _LENGTH, _WIDTH)
    raise ValueError(f"model {name!r} is not there; choose one of {', '.join(MODELS)}")


def _Last(torch: Any, inner: Any) -> Any:  # noqa: N802 - it makes a class of a library that may not be there
    """A sequence model with classes of the last position."""

    class Last(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = inner, torch.nn.Linear(_WIDTH, _CLASSES)

        def forward(self, inputs: Any) -> Any:
            outputs = self.inner(inputs)
            return self.head((outputs[0] if isinstance(outputs, tuple) else outputs)[:, -1])

    return Last()


def synchronise(torch: Any, device: str) -> None:
    """Wait until the device has done all that it was given; a CPU has already."""
    if device == "cuda":
        torch.cuda.synchronize()


def train(name: str, batch: int, device: str, begin: threading.Event, end: threading.Event) -> None:
    """Warm up, wait for `begin`, train until `end`."""
    torch: Any = importlib.import_module("torch")  # no dependency of ours

    torch.manual_seed(0)
    model, inputs_of = build(torch, name)
    model = model.to(device)
    inputs, labels = inputs_of(batch).to(device), torch.randint(_CLASSES, (batch,), device=device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss_of(model(inputs), labels).backward()
        optimiser.step()

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
