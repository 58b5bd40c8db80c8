"""Loaders of known CPU cost, in the training process or in processes beside it.

The cost is real work (images are decoded and thrown away) done until the process's own CPU clock says that the step
has had its milliseconds. So the speed of the pipeline is, on any machine and by construction,

    steps per second = min(1000 / device_ms, cpu_limit_millis / cpu_ms_per_step)
"""

import multiprocessing
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from small_network import Floats, Integers
from synthetic_images import Images

Batch = tuple[Floats, Integers]

AHEAD = 2
"""Batches asked of each process beyond the one that is being trained on."""


def burn_until(images: Images, moment: float) -> None:
    """Decode images until this process has used CPU time up to `moment` (seconds of its CPU clock)."""
    index = 0
    while time.process_time() < moment:
        images.decode(index % len(images.labels), flip=True)
        index += 1


class LocalLoader:
    """Batches made in the training process; each step as a whole, training included, costs `cpu_seconds`."""

    def __init__(self, images: Images, batch_size: int, cpu_seconds: float, rank: int = 0, world_size: int = 1) -> None:
        self._images = images
        self._batch_size = batch_size
        self._cpu_seconds = cpu_seconds
        self._rank, self._world_size = rank, world_size
        self._paid_until: float | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        return max(1, len(self._images.labels) // (self._batch_size * self._world_size))

    def iter_from(self, epoch: int, first: int) -> Iterator[Batch]:
        """This rank's batches of an epoch from number `first` on."""
        paid_until = time.process_time() if self._paid_until is None else self._paid_until
        for number in range(epoch * len(self) + first, (epoch + 1) * len(self)):
            batch = self._images.batch(number * self._world_size + self._rank, self._batch_size)
            paid_until += self._cpu_seconds
            burn_until(self._images, paid_until)
            self._paid_until = paid_until
            yield batch


class ParallelLoader:
    """Batches made by `processes` processes in turn, up to `AHEAD` each in advance, across the ends of epochs too.

    A step costs `cpu_seconds` over all processes: what the training process itself has used for the last step is
    taken off what the next batch costs.
    """

    def __init__(self, images: Images, batch_size: int, cpu_seconds: float, processes: int) -> None:
        self._length = max(1, len(images.labels) // batch_size)
        self._cpu_seconds = cpu_seconds
        self._asked = self._answered = 0
        self._paid_until = time.process_time()
        self._pipes: list[Connection] = []
        context = multiprocessing.get_context("fork")
        for _ in range(processes):
            here, there = context.Pipe()
            context.Process(target=_serve, args=(there, images, batch_size, os.getpid()), daemon=True).start()
            there.close()
            self._pipes.append(here)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return self._length

    def iter_from(self, epoch: int, first: int) -> Iterator[Batch]:
        """The batches of an epoch from number `first` on."""
        start = epoch * self._length + first
        if start != self._answered:
            while self._answered < self._asked:
                self._receive()
            self._asked = self._answered = start
        while self._answered < (epoch + 1) * self._length:
            while self._asked < self._answered + AHEAD * len(self._pipes):
                self._ask()
            yield self._receive()

    def _ask(self) -> None:
        used, self._paid_until = time.process_time() - self._paid_until, time.process_time()
        self._pipes[self._asked % len(self._pipes)].send((self._asked, self._cpu_seconds - used))
        self._asked += 1

    def _receive(self) -> Batch:
        batch: Batch = self._pipes[self._answered % len(self._pipes)].recv()
        self._answered += 1
        return batch


def _serve(pipe: Connection, images: Images, batch_size: int, parent: int) -> None:
    """What a loader process does until the training process is gone."""
    paid_until = time.process_time()
    while True:
        while not pipe.poll(1.0):
            if os.getppid() != parent:
                return
        number, cpu_seconds = pipe.recv()
        batch = images.batch(number, batch_size)
        paid_until += cpu_seconds
        burn_until(images, paid_until)
        pipe.send(batch)
