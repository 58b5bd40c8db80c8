"""A real input pipeline that trains on the GPU: `python -m synergy_cli.gpu.pipeline WORKERS`.

Each sample is decoded from compressed bytes, cropped and turned by PyTorch's DataLoader in so many processes; a small
convolutional network trains on it. It is run by the profile harness.
"""

import importlib
import sys
import zlib
from typing import Any

import synergy_job
from synergy_cli.gpu.training import build

BATCH, SIDE, IMAGES = 64, 96, 4096


class Pictures:
    """Compressed images, made once, decoded each time. It holds no module, so that it goes to any kind of process."""

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


def main() -> None:
    """Train until the harness ends it."""
    torch: Any = importlib.import_module("torch")  # no dependency of ours

    torch.set_num_threads(1)
    workers = int(sys.argv[1])
    loader = torch.utils.data.DataLoader(
        Pictures(), batch_size=BATCH, num_workers=workers, drop_last=True, persistent_workers=True, pin_memory=True
    )
    model = build(torch, "cnn")[0].cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_of = torch.nn.CrossEntropyLoss()
    for images, labels in synergy_job.iterate(loader):
        optimiser.zero_grad(set_to_none=True)
        loss_of(model(images.cuda(non_blocking=True)), labels.cuda(non_blocking=True)).backward()
        optimiser.step()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
