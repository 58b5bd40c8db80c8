"""A two-layer network with hand-written gradients, trained by momentum SGD. Float32 all through."""

import hashlib
import os
from dataclasses import dataclass, field

# Read when numpy is loaded: more threads would only fight for the CPU limit.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass
class Network:
    """`weights` and `momentum` are flat vectors of equal length: what a checkpoint holds and an all-reduce sends."""

    inputs: int
    hidden: int
    classes: int
    weights: Floats = field(init=False)
    momentum: Floats = field(init=False)

    def __post_init__(self) -> None:
        random = np.random.default_rng(7)
        scales = np.concatenate(
            [
                np.full(self.inputs * self.hidden, (2 / self.inputs) ** 0.5),
                np.zeros(self.hidden),
                np.full(self.hidden * self.classes, (2 / self.hidden) ** 0.5),
                np.zeros(self.classes),
            ]
        )
        self.weights = (random.standard_normal(scales.size) * scales).astype(np.float32)
        self.momentum = np.zeros_like(self.weights)

    def gradient(self, images: Floats, labels: Integers) -> tuple[float, Floats]:
        """Mean cross-entropy over the batch and its gradient. `images` (batch, inputs), `labels` (batch,)."""
        w1, b1, w2, b2 = self._layers()
        rows = np.arange(len(labels))
        hidden = np.maximum(images @ w1 + b1, 0)
        logits = hidden @ w2 + b2
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        odds /= odds.sum(axis=1, keepdims=True)
        loss = float(-np.log(odds[rows, labels] + 1e-9).mean())
        odds[rows, labels] -= 1
        odds /= len(labels)
        to_hidden = (odds @ w2.T) * (hidden > 0)
        parts = (images.T @ to_hidden, to_hidden.sum(axis=0), hidden.T @ odds, odds.sum(axis=0))
        return loss, np.concatenate([part.ravel() for part in parts]).astype(np.float32)

    def step(self, gradient: Floats, rate: float = 0.02) -> None:
        """One step of gradient descent with momentum 0.9."""
        self.momentum *= np.float32(0.9)
        self.momentum -= np.float32(rate) * gradient
        self.weights += self.momentum

    def digest(self) -> bytes:
        """32 bytes that are equal for equal weights."""
        return hashlib.sha256(self.weights.tobytes()).digest()

    def _layers(self) -> tuple[Floats, Floats, Floats, Floats]:
        sizes = (self.inputs * self.hidden, self.hidden, self.hidden * self.classes)
        w1, b1, w2, b2 = np.split(self.weights, np.cumsum(sizes))
        return w1.reshape(self.inputs, self.hidden), b1, w2.reshape(self.hidden, self.classes), b2
