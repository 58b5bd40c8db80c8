"""A real input pipeline that trains on the GPU: `python -m synergy_cli.gpu.pipeline WORKERS [SECONDS]`.

Each sample is decoded from compressed bytes, cropped and turned by PyTorch's DataLoader in so many processes; a small
convolutional network trains on it, or with SECONDS something that takes so long for a step in its place. It is run by
the profile harness.
"""

import importlib
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

import synergy_job
from synergy_cli.gpu.models import build
from synergy_cli.gpu.training import synchronise

Step = Callable[[Any, Any], None]
"""Trains on images and their labels."""
BATCH, SIDE, IMAGES = 64, 96, 4096


class Pictures:
    """Compressed images, made once, decoded each time. It holds no module and can be sent to any kind of process."""

    def __init__(self) -> None:
        torch: Any = importlib.import_module("torch")
        noise = torch.randint(0, 40, (64, SIDE, SIDE, 3), dtype=torch.uint8)
        self._stored = [zlib.compress(one.numpy().tobytes(), 3) for one in noise]

    def __len__(self) -> int:
        """Images of an epoch."""
        return IMAGES

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Decode, resize, crop and turn one."""
        torch: Any = importlib.import_module("torch")
        data = bytearray(zlib.decompress(self._stored[index % len(self._stored)]))
        image = torch.frombuffer(data, dtype=torch.uint8).reshape(1, SIDE, SIDE, 3).permute(0, 3, 1, 2).float() / 255
        resized = torch.nn.functional.interpolate(image, size=(48, 48), mode="bilinear", antialias=True)[0]
        place = index % 16
        cut = resized[:, place : place + 32, place : place + 32]
        return (cut.flip(-1) if index % 2 else cut), index % 10


def training_on(torch: Any, device: str) -> Step:
    """Steps of a small convolutional network."""
    model = build(torch, "cnn")[0].to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_of = torch.nn.CrossEntropyLoss()

    def step(images: Any, labels: Any) -> None:
        optimiser.zero_grad(set_to_none=True)
        loss_of(model(images.to(device, non_blocking=True)), labels.to(device, non_blocking=True)).backward()
        optimiser.step()
        synchronise(torch, device)

    return step


def stand_in(seconds: float) -> Step:
    """Steps that take so long and, as a GPU's, no CPU."""
    return lambda _images, _labels: time.sleep(seconds)


def main() -> None:
    """Train until the harness ends it."""
    torch: Any = importlib.import_module("torch")  # no dependency of ours

    torch.set_num_threads(1)
    workers, seconds = int(sys.argv[1]), (float(sys.argv[2]) if len(sys.argv) > 2 else None)
    loader = torch.utils.data.DataLoader(
        Pictures(),
        batch_size=BATCH,
        num_workers=workers,
        drop_last=True,
        persistent_workers=True,
        pin_memory=seconds is None,
    )
    step = training_on(torch, "cuda") if seconds is None else stand_in(seconds)
    for images, labels in synergy_job.iterate(loader):
        step(images, labels)


if __name__ == "__main__":
    main()
