"""An ordinary PyTorch training script, with the two lines that make it a job: those with `state`.

A small network with dropout learns to classify synthetic images. The data set dims each image by chance and adds noise.
One process trains alone; several average their gradients (DDP), by gloo or on GPUs by NCCL.
"""

import argparse
import hashlib
import os
import random
import time

import torch
from torch import nn

import synergy_job.torch

CLASSES, SIDE = 10, 16


class Images:
    """A map-style data set: noise on a pattern for each class, made once and augmented each time it is read."""

    def __init__(self, count: int) -> None:
        made = torch.Generator().manual_seed(1)
        patterns = 0.2 * torch.randn(CLASSES, 1, SIDE, SIDE, generator=made)
        self._labels = torch.randint(0, CLASSES, (count,), generator=made)
        self._images = patterns[self._labels] + torch.randn(count, 1, SIDE, SIDE, generator=made)

    def __len__(self) -> int:
        """Number of images."""
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """One image, dimmed and with some noise, and its class."""
        image = self._images[index] * random.uniform(0.8, 1.2)
        return image + 0.1 * torch.randn(image.shape), self._labels[index]


def network() -> nn.Module:
    """Convolution, dropout and two layers: 40,000 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(8 * SIDE * SIDE // 4, 64),
        nn.ReLU(),
        nn.Linear(64, CLASSES),
    )


def main() -> None:
    """Train until the job is done or must leave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--checkpoint", default="checkpoints", metavar="DIR", help="where the checkpoint is kept")
    parser.add_argument("--images", type=int, default=640, help="images in an epoch")
    parser.add_argument("--batch-size", type=int, default=16, help="images in a step of one process")
    parser.add_argument("--workers", type=int, default=0, help="loader processes; -1: as many as there are CPUs")
    parser.add_argument("--steps", type=int, default=200, help="steps outside a cluster; inside, the job says")
    parser.add_argument("--save-every", type=int, metavar="STEPS", help="also save after each so many steps")
    parser.add_argument("--step-ms", type=float, default=0, help="time that each step waits, as for a slower device")
    parser.add_argument("--log-every", type=int, default=20, metavar="STEPS")
    given = parser.parse_args()

    torch.manual_seed(0)
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if several:
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
        torch.manual_seed(torch.distributed.get_rank())  # each process drops out other neurons
    data = Images(given.images)
    sampler = torch.utils.data.DistributedSampler(data) if several else None
    workers = round(synergy_job.cpus()) if given.workers < 0 else given.workers
    loader = torch.utils.data.DataLoader(
        data, given.batch_size, shuffle=sampler is None, sampler=sampler, num_workers=workers, drop_last=True
    )
    model = network().to(device)
    if several:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=given.steps)
    step = 0

    path = os.path.join(given.checkpoint, "model.pt")
    state = synergy_job.torch.state(path, model=model, optimizer=optimizer, scheduler=scheduler)
    for images, labels in state.iterate(loader, steps=given.steps, checkpoint_every_steps=given.save_every):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        scheduler.step()
        step = scheduler.last_epoch
        time.sleep(given.step_ms / 1000)
        if step % given.log_every == 0:
            print(f"step {step} loss {loss.item():.9g} with {workers} loader processes", flush=True)
    content = b"".join(value.cpu().numpy().tobytes() for value in model.state_dict().values())
    print(f"done after step {step}, weights {hashlib.sha256(content).hexdigest()[:16]}", flush=True)


if __name__ == "__main__":
    main()
