"""Training that waits for its device: little CPU is enough for its full speed.

With 5 ms of CPU a step and a device of 50 ms a step it is fastest from 100 millis on. On a fake GPU that it shares it
is slowed by what the other jobs compute (`--gpu-compute`).
"""

from common import State, options
from fake_device import FakeDevice
from fake_mps import Client
from image_loader import LocalLoader
from synthetic_images import Images

import synergy_job


def main() -> None:
    """Train until the job is done or must leave."""
    given = options(__doc__ or "", device_ms=50, cpu_ms=5).parse_args()
    loader = LocalLoader(Images(), given.batch_size, given.cpu_ms_per_step / 1000)
    client = Client(given.gpu_compute, given.gpu_memory_mib, bandwidth=given.gpu_bandwidth)
    device = FakeDevice(given.device_ms / 1000, client)
    state = State(given.checkpoint)
    for images, labels in synergy_job.iterate(loader, save=state.save, load=state.load, steps=given.steps):
        device.launch()
        loss, gradient = state.network.gradient(images, labels)
        state.network.step(gradient)
        state.advance(loss, given.log_every)
    device.finish()
    client.close()
    print(f"done after step {state.step}, weights {state.network.digest().hex()[:16]}", flush=True)


if __name__ == "__main__":
    main()
