"""Training that reads its images from storage of a known speed, through the library's cache.

With all images in memory a step takes as long as the device or its CPU time; where a part of them must be read, as long
as that: batch bytes x (1 - cached bytes / data set bytes) / bandwidth.
"""

from common import State, options
from fake_device import FakeDevice
from image_loader import EpochLoader
from slow_storage import SlowStorage
from synthetic_images import Images

import synergy_job


def main() -> None:
    """Train until the job is done or must leave."""
    parser = options(__doc__ or "", device_ms=50, cpu_ms=10)
    parser.add_argument("--loaders", type=int, default=2, help="loader processes, new ones for each epoch")
    parser.add_argument("--image-bytes", type=int, default=8192, help="size of an image in storage")
    parser.add_argument("--storage-mib-per-s", type=float, default=4.0, help="what storage gives, over all loaders")
    parser.add_argument("--cache-mib", type=float, help="size of the cache; by default what the plan leaves for it")
    given = parser.parse_args()
    images = Images()
    data = synergy_job.CachedDataset(
        SlowStorage(images, given.image_bytes, given.storage_mib_per_s * 2**20),
        images.sample,
        max_bytes=None if given.cache_mib is None else int(given.cache_mib * 2**20),
    )
    loader = EpochLoader(data, given.batch_size, given.cpu_ms_per_step / 1000, given.loaders)
    device = FakeDevice(given.device_ms / 1000)
    state = State(given.checkpoint)
    for pixels, labels in synergy_job.iterate(loader, save=state.save, load=state.load, steps=given.steps):
        device.launch()
        loss, gradient = state.network.gradient(pixels, labels)
        state.network.step(gradient)
        state.advance(loss, given.log_every)
    device.finish()
    for epoch in range(state.step // len(loader)):
        counts = data.counts(epoch)
        print(f"epoch {epoch}: {counts.hits} of {counts.hits + counts.misses} images from the cache", flush=True)
    print(f"done after step {state.step}, weights {state.network.digest().hex()[:16]}", flush=True)


if __name__ == "__main__":
    main()
