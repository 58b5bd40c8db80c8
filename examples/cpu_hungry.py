"""Training that waits for its input pipeline: its speed depends on its CPU limit up to cost / device time.

With 70 ms of CPU a step and a device of 50 ms a step it is fastest from 1400 millis on, and half as fast at 700.
"""

from common import State, options
from fake_device import FakeDevice
from fake_mps import Client
from image_loader import ParallelLoader
from synthetic_images import Images

import synergy_job


def main() -> None:
    """Train until the job is done or must leave."""
    parser = options(__doc__ or "", device_ms=50, cpu_ms=70)
    parser.add_argument("--loaders", type=int, default=2, help="loader processes")
    given = parser.parse_args()
    loader = ParallelLoader(Images(), given.batch_size, given.cpu_ms_per_step / 1000, given.loaders)
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
