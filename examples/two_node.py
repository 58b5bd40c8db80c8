"""Data-parallel training of several workers that may be on several nodes: gradients are averaged over all each step.

Every step checks that all workers hold the same weights. Rank 0 keeps the checkpoint and sends it to the others, so
that only its node needs the volume.
"""

from all_reduce import AllReduce
from common import State, options
from fake_device import FakeDevice
from image_loader import LocalLoader
from synthetic_images import Images

import synergy_job


def main() -> None:
    """Train until the job is done or must leave."""
    given = options(__doc__ or "", device_ms=50, cpu_ms=5).parse_args()
    workers = AllReduce()
    loader = LocalLoader(
        Images(), given.batch_size, given.cpu_ms_per_step / 1000, rank=workers.rank, world_size=workers.world_size
    )
    device = FakeDevice(given.device_ms / 1000)
    state = State(given.checkpoint)

    def load() -> int | None:
        found = state.load() if workers.rank == 0 else None
        content = workers.from_rank_0(None if found is None else state.content(found))
        return None if content is None else state.restore(content)

    for images, labels in synergy_job.iterate(loader, save=state.save, load=load, steps=given.steps):
        device.launch()
        loss, gradient = state.network.gradient(images, labels)
        state.network.step(workers.mean(gradient, state.network.digest()))
        state.advance(loss, given.log_every, who=f"rank {workers.rank} ")
    device.finish()
    print(f"rank {workers.rank} done after step {state.step}, weights {state.network.digest().hex()[:16]}", flush=True)


if __name__ == "__main__":
    main()
