"""The MinIO cache: hits as the model says, over processes that come, go and are killed."""

import errno
import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from support.job.cached_items import content, read_all, size_of
from synergy_core.profiling.memory_model import MemoryModel, hit_rate
from synergy_job.cache.layout import EPOCHS_KEPT, CacheError, EpochCounts, Item
from synergy_job.cache.store import Store

FORK = multiprocessing.get_context("fork")


def epoch_of(store: Store, epoch: int, items: int, workers: int = 3, method: str = "fork") -> EpochCounts:
    """An epoch in a new random order by new processes; its counts."""
    order = random.sample(range(items), items)
    store.set_epoch(epoch)
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=read_all, args=(store, order[k::workers])) for k in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    return store.counts()


def check(store: Store) -> None:
    """Every item that is kept is what it should be, and all that the budget is charged for is there."""
    kept = [(index, item) for index in range(store.items) if (item := store.peek(index)) is not None]
    assert all(item.data == content(index, len(item.data)) for index, item in kept)
    assert sum(len(item.data) for _, item in kept) == store.used
    assert len(kept) == store.count


@contextmanager
def in_child(act: Callable[[], object]) -> Iterator[int]:
    """A forked process that does something and ends; its pid, which is waited for afterwards."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    try:
        yield pid
    finally:
        os.waitpid(pid, 0)


def killed_at_write(number: int, act: Callable[[], object]) -> bool:
    """Do it in a child that is killed as it begins its write of that number (0, 1, ...); whether it came so far."""

    def doomed() -> None:
        left = [number]
        write = os.pwrite

        def counting(fd: int, data: bytes, at: int) -> int:
            if left[0] == 0:
                write(fd, bytes(data)[: len(data) // 2] if len(data) > 500 else b"", at)  # some of an item's bytes
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return write(fd, data, at)

        os.pwrite = counting
        act()
        os._exit(7)

    pid = os.fork()
    if pid == 0:
        doomed()
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("part", [0.1, 0.25, 0.5, 0.75, 1.0])
def test_each_epoch_has_as_many_hits_as_the_model_says(part: float) -> None:
    items, process_bytes = 2000, 5_000_000
    dataset = sum(map(size_of, range(items)))
    budget = round(part * dataset)
    model = MemoryModel(
        dataset_bytes=dataset, samples=items, batch_size=10, storage_bytes_per_s=1e6, process_bytes=process_bytes
    )
    store = Store(items, budget)
    assert epoch_of(store, 0, items) == EpochCounts(0, 0, items)
    for epoch in (1, 2):
        counts = epoch_of(store, epoch, items)
        assert counts.hits + counts.misses == items
        assert counts.hits == store.count, "nothing is evicted"
        assert counts.hit_rate == pytest.approx(hit_rate(process_bytes + budget, model), rel=0.02)


def test_spawned_processes_share_it_as_well() -> None:
    store = Store(400, 200_000)
    assert epoch_of(store, 0, 400, workers=2, method="spawn").misses == 400
    assert epoch_of(store, 1, 400, workers=2, method="spawn").hits == store.count > 150
    check(store)


def test_what_does_not_fit_into_what_is_left_is_not_kept_and_what_came_first_stays() -> None:
    store = Store(4, 1000)
    assert store.put(0, Item(content(0, 600), pickled=False))
    assert not store.put(1, Item(content(1, 401), pickled=False))
    assert store.put(2, Item(content(2, 400), pickled=True))
    assert not store.put(0, Item(b"another", pickled=False))
    assert (store.used, store.count) == (1000, 2)
    assert store.get(0) == (content(0, 600), False)
    assert store.get(2) == (content(2, 400), True)
    assert store.get(1) is None
    assert store.get(3) is None
    assert store.counts() == EpochCounts(0, 2, 2)


def test_an_item_without_bytes_is_an_item() -> None:
    store = Store(1, 0)
    assert store.put(0, Item(b"", pickled=False))
    assert store.get(0) == (b"", False)


def test_counts_of_old_epochs_are_dropped() -> None:
    store = Store(1, 0)
    for epoch in range(EPOCHS_KEPT + 1):
        store.set_epoch(epoch)
        store.get(0)
    assert store.counts(0) == EpochCounts(0, 0, 0)
    assert store.counts(1) == EpochCounts(1, 0, 1)
    assert store.counts().epoch == EPOCHS_KEPT


def test_a_process_killed_while_it_puts_an_item_leaves_the_cache_whole() -> None:
    for number in range(20):
        store = Store(10, 3000)
        store.put(0, Item(content(0), pickled=False))
        reached = killed_at_write(number, lambda s=store: s.put(1, Item(content(1), pickled=False)))
        store.get(1)  # whoever comes next finishes what was begun, or finds nothing of it
        check(store)
        assert store.get(1) is None or store.count == 2
        store.put(1, Item(content(1), pickled=False))
        assert store.put(2, Item(content(2), pickled=False)), "no part of the budget is lost"
        check(store)
        assert store.used == 3000
        if not reached:
            assert number > 2
            return
    raise AssertionError("it never came to an end")


def test_a_process_killed_while_it_makes_the_cache_smaller_leaves_it_whole() -> None:
    for number in range(20):
        store = Store(10, 10_000)
        for index in range(10):
            store.put(index, Item(content(index), pickled=False))
        reached = killed_at_write(number, lambda s=store: s.resize(4500))
        store.get(9)
        check(store)
        assert store.count in ((4, 10) if number < 2 else (4,))
        store.resize(10_000)
        for index in range(10):
            store.put(index, Item(content(index), pickled=False))
        check(store)
        assert store.used == 10_000
        if not reached:
            assert number > 2
            return
    raise AssertionError("it never came to an end")


def test_a_parent_killed_with_the_lock_does_not_block_its_children() -> None:
    """A forked loader inherits the descriptor with which its parent locks."""
    store = Store(10, 10_000)
    alive, told = FORK.Pipe()

    def parent() -> None:
        store.get(0)  # opens what it locks with
        pid = os.fork()
        if pid == 0:
            while os.getppid() == mother:
                time.sleep(0.01)
            store.put(1, Item(content(1), pickled=False))
            told.send("done")
            os._exit(0)
        os.pwrite = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment,return-value]
        store.put(0, Item(content(0), pickled=False))

    pid = os.fork()
    if pid == 0:
        mother = os.getpid()
        parent()
    os.waitpid(pid, 0)
    assert alive.poll(30), "the child waits for a lock that nobody holds"
    check(store)
    assert store.count == 1


def test_a_fork_while_another_thread_holds_the_lock_is_harmless() -> None:
    store = Store(2, 1000)
    inside, go = threading.Event(), threading.Event()

    def hold() -> None:
        with store._locked():
            inside.set()
            go.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(30)
    with in_child(lambda: store.put(0, Item(b"x", pickled=False))):
        go.set()
        thread.join(30)
    assert store.get(0) == (b"x", False)


def test_processes_killed_at_random_moments_lose_and_spoil_nothing() -> None:
    items = 3000
    store = Store(items, 2_000_000)
    rng = random.Random(5)
    ended = 0
    for _ in range(25):
        workers = [FORK.Process(target=read_all, args=(store, rng.sample(range(items), items))) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            time.sleep(rng.random() * 0.02)
            worker.kill()
        for worker in workers:
            worker.join(30)
            assert worker.exitcode in (0, -signal.SIGKILL), "nothing that was read is spoilt"
            ended += worker.exitcode == 0
    check(store)
    assert ended < 75, "some were killed at work"
    read_all(store, list(range(items)))
    check(store)
    assert store.budget - store.used < 900, "it can be filled to the brim"


def test_a_smaller_budget_gives_memory_back_and_a_larger_one_is_filled_again() -> None:
    items = 1000
    store = Store(items, 800_000)
    epoch_of(store, 0, items)
    before = os.fstat(store.fileno()).st_blocks * 512
    first = [index for index in range(items) if store.peek(index) is not None]
    store.resize(300_000)
    check(store)
    after = os.fstat(store.fileno()).st_blocks * 512
    assert store.budget == 300_000
    assert store.used > 300_000 - 1100
    assert before - after >= 490_000
    assert {index for index in range(items) if store.peek(index) is not None} < set(first), "the last to come went"
    store.resize(900_000)
    epoch_of(store, 1, items)
    check(store)
    assert store.used > 900_000 - 1100


def test_readers_never_see_anything_wrong_while_the_size_changes() -> None:
    items = 400
    store = Store(items, 400_000)
    stop = time.monotonic() + 1.0

    def read() -> None:
        rng = random.Random(os.getpid())
        while time.monotonic() < stop:
            read_all(store, rng.sample(range(items), items))

    workers = [FORK.Process(target=read) for _ in range(3)]
    for worker in workers:
        worker.start()
    rng = random.Random(1)
    while time.monotonic() < stop:
        store.resize(rng.randrange(0, 450_000))
        time.sleep(0.003)
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    check(store)


def test_no_memory_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(2, 10_000)
    write = os.pwrite

    def full(fd: int, data: bytes, at: int) -> int:
        if len(data) == 5000:
            raise OSError(errno.ENOSPC, "no space left")
        return write(fd, data, at)

    monkeypatch.setattr(os, "pwrite", full)
    assert not store.put(0, Item(bytes(5000), pickled=False))
    assert store.put(1, Item(content(1), pickled=False))
    check(store)


def test_without_memory_files_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(CacheError, match="read the data set itself here"):
        Store(1, 1)


def test_what_is_no_cache_is_not_adopted() -> None:
    other = os.memfd_create("other")
    os.truncate(other, 4096)
    with pytest.raises(CacheError, match="no cache of this version"):
        Store.adopt(other)
