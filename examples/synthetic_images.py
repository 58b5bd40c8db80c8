"""A data set of small made-up images, kept compressed as real ones are, decoded and augmented batch by batch."""

import zlib

import numpy as np
from small_network import Floats, Integers

SIDE = 16
CLASSES = 10
INPUTS = SIDE * SIDE


class Images:
    """`count` images of 16 x 16 bytes in 10 classes: each a pattern of its class under noise."""

    def __init__(self, count: int = 1024) -> None:
        random = np.random.default_rng(11)
        patterns = random.integers(0, 256, (CLASSES, SIDE, SIDE))
        self.labels = random.integers(0, CLASSES, count)
        noise = random.normal(0, 160, (count, SIDE, SIDE))
        pixels = np.clip(patterns[self.labels] + noise, 0, 255).astype(np.uint8)
        self._compressed = [zlib.compress(image.tobytes(), 1) for image in pixels]

    def stored(self, index: int) -> tuple[bytes, int]:
        """One image as storage has it, and its label."""
        return self._compressed[index], int(self.labels[index])

    @staticmethod
    def sample(stored: tuple[bytes, int]) -> tuple[Floats, int]:
        """One image and its label from what storage has, which may be longer."""
        return _floats(stored[0], flip=False), stored[1]

    def decode(self, index: int, flip: bool) -> Floats:
        """One image as (256,) floats around 0, mirrored or not."""
        return _floats(self._compressed[index], flip)

    def batch(self, number: int, size: int) -> tuple[Floats, Integers]:
        """Batch `number` (0, 1, ...) of a shuffled stream: (size, 256) images, (size,) labels. The same every time."""
        random = np.random.default_rng([13, number])
        chosen = random.integers(0, len(self.labels), size)
        flips = random.random(size) < 0.1
        images = np.stack([self.decode(int(i), bool(flip)) for i, flip in zip(chosen, flips, strict=True)])
        return images, self.labels[chosen]


def _floats(compressed: bytes, flip: bool) -> Floats:
    image = np.frombuffer(zlib.decompressobj().decompress(compressed), np.uint8).reshape(SIDE, SIDE)
    if flip:
        image = image[:, ::-1]
    floats: Floats = (image.ravel().astype(np.float32) - np.float32(128)) / np.float32(128)
    return floats
