"""Storage of a known bandwidth, over all processes that read from it."""

import multiprocessing
import time

from synthetic_images import Images


class SlowStorage:
    """The images as storage has them: each `image_bytes` long, and read at `bytes_per_s` by all processes together."""

    def __init__(self, images: Images, image_bytes: int, bytes_per_s: float) -> None:
        self._images = images
        self._image_bytes = image_bytes
        self._seconds = image_bytes / bytes_per_s
        self._free_from = multiprocessing.get_context("fork").Value("d", 0.0)

    def __len__(self) -> int:
        """Images in the data set."""
        return len(self._images.labels)

    def __getitem__(self, index: int) -> tuple[bytes, int]:
        """One compressed image, filled up to its size in storage, and its label."""
        with self._free_from.get_lock():
            ready = max(time.monotonic(), self._free_from.value) + self._seconds
            self._free_from.value = ready
        time.sleep(max(0.0, ready - time.monotonic()))
        compressed, label = self._images.stored(index)
        return compressed.ljust(self._image_bytes, b"\0"), label
