"""Loaders of known CPU cost, in the training process or in processes beside it.

The cost is real work (images are decoded and thrown away) done until the process's own CPU clock says that the step
has had its milliseconds. So the speed of the pipeline is, on any machine and by construction,

    steps per second = min(1000 / device_ms, cpu_limit_millis / cpu_ms_per_step)
"""

import collections
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import Connection

import numpy as np
from small_network import Floats, Integers
from synthetic_images import Images

import synergy_job

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


class EpochLoader:
    """Batches of a map-style `dataset` of (image, label), in a new order in each epoch, made by `processes` new
    processes each time, as PyTorch's `DataLoader` does it. Each batch costs them `cpu_seconds` beside its reading."""

    def __init__(
        self,
        dataset: synergy_job.CachedDataset[tuple[Floats, int]],
        batch_size: int,
        cpu_seconds: float,
        processes: int,
    ) -> None:
        self.dataset = dataset
        self._batch_size = batch_size
        self._cpu_seconds = cpu_seconds
        self._processes = processes
        self._epoch = 0

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.dataset) // self._batch_size

    def set_epoch(self, epoch: int) -> None:
        """The epoch that is iterated next."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[Batch]:
        order = np.random.default_rng([17, self._epoch]).permutation(len(self.dataset))
        batches = [order[first : first + self._batch_size].tolist() for first in range(0, len(order), self._batch_size)]
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(self._processes, context, _begin, (self.dataset, self._cpu_seconds)) as pool:
            asked: collections.deque[Future[Batch]] = collections.deque()
            for batch in batches[: len(self)]:
                asked.append(pool.submit(_make, batch))
                if len(asked) > AHEAD * self._processes:
                    yield asked.popleft().result()
            while asked:
                yield asked.popleft().result()


_at_work: list[tuple[synergy_job.CachedDataset[tuple[Floats, int]], float]] = []


def _begin(dataset: synergy_job.CachedDataset[tuple[Floats, int]], cpu_seconds: float) -> None:
    _at_work[:] = [(dataset, cpu_seconds)]


def _make(indices: list[int]) -> Batch:
    ((dataset, cpu_seconds),) = _at_work
    until = time.process_time() + cpu_seconds
    images, labels = zip(*(dataset[index] for index in indices), strict=True)
    while time.process_time() < until:
        np.abs(images[0])
    return np.stack(images), np.array(labels)


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
