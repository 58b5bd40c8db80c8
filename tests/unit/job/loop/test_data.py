"""Batches: epoch after epoch, and the right ones after a resume."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_job.loop.data import LoaderError, epochs, one_epoch

LENGTHS = st.integers(1, 9)
STEPS = st.integers(0, 60)


class Unsized:
    """A loader that does not know its length."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.made = 0

    def __iter__(self) -> Iterator[int]:
        for number in range(self.length):
            self.made += 1
            yield number


class Shuffled:
    """A loader whose sampler must be told the epoch, as PyTorch's distributed sampler must."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.sampler = self
        self.epoch = -1

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter([(self.epoch, number) for number in range(self.length)])


class Seekable:
    """A loader that can begin anywhere; it keeps what it was asked for."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.asked: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return self.length

    def iter_from(self, epoch: int, first: int) -> Iterator[tuple[int, int]]:
        self.asked.append((epoch, first))
        return iter([(epoch, number) for number in range(first, self.length)])


@given(LENGTHS, STEPS, STEPS)
def test_a_list_goes_on_where_it_was_left(length: int, done: int, more: int) -> None:
    whole = list(islice(epochs(list(range(length))), done + more))
    assert list(islice(epochs(list(range(length)), done), more)) == whole[done:]


@given(LENGTHS, STEPS, STEPS)
def test_a_loader_without_length_goes_on_where_it_was_left(length: int, done: int, more: int) -> None:
    whole = list(islice(epochs(Unsized(length)), done + more))
    resumed = Unsized(length)
    assert list(islice(epochs(resumed, done), more)) == whole[done:]
    assert resumed.made <= 2 * length + more


@given(LENGTHS, STEPS, STEPS)
def test_a_function_of_the_epoch_goes_on_where_it_was_left(length: int, done: int, more: int) -> None:
    def loader(epoch: int) -> list[tuple[int, int]]:
        return [(epoch, number) for number in range(length)]

    expected = [divmod(step, length) for step in range(done, done + more)]
    assert list(islice(epochs(loader, done), more)) == expected


@given(LENGTHS, STEPS, STEPS)
def test_a_shuffling_loader_is_told_the_epoch(length: int, done: int, more: int) -> None:
    expected = [divmod(step, length) for step in range(done, done + more)]
    assert list(islice(epochs(Shuffled(length), done), more)) == expected


@given(LENGTHS, STEPS, st.integers(1, 60))
def test_a_seekable_loader_begins_in_the_middle_of_an_epoch(length: int, done: int, more: int) -> None:
    loader = Seekable(length)
    expected = [divmod(step, length) for step in range(done, done + more)]
    assert list(islice(epochs(loader, done), more)) == expected
    assert loader.asked[0] == divmod(done, length)


def test_batches_may_be_lists() -> None:
    assert list(islice(epochs([[1], [2]]), 3)) == [[1], [2], [1]]


def test_one_epoch_is_one_pass() -> None:
    assert list(one_epoch(Seekable(3))) == [(0, 0), (0, 1), (0, 2)]
    assert list(one_epoch(lambda epoch: [epoch, epoch])) == [0, 0]


class Dali:
    """The protocol of DALI's iterators, whose library needs a GPU: `iter()` gives the iterator itself, an epoch ends
    with StopIteration, and `reset` begins the next one. It says nothing about its length."""

    def __init__(self, batches: int) -> None:
        self.batches, self.epoch, self.made = batches, 0, 0

    def __iter__(self) -> "Dali":
        return self

    def __next__(self) -> tuple[int, int]:
        if self.made == self.batches:
            raise StopIteration
        self.made += 1
        return self.epoch, self.made - 1

    def reset(self) -> None:
        assert self.made == self.batches, "DALI ignores a reset within an epoch"
        self.epoch, self.made = self.epoch + 1, 0


@pytest.mark.parametrize("done", [0, 1, 2, 3])
def test_an_iterator_with_reset_goes_on_epoch_after_epoch(done: int) -> None:
    want = [(epoch, batch) for epoch in range(3) for batch in range(2)]
    found = list(islice(epochs(Dali(2), done), 6 - done))
    assert [batch for _, batch in found] == [batch for _, batch in want[done:]]
    assert len(found) == 6 - done


def test_an_epoch_of_unknown_length_is_told_at_its_end() -> None:
    told: list[int] = []
    assert list(epochs(Dali(3), 1, lambda steps: told.append(steps) or True)) == [(0, 1), (0, 2)]
    assert told == [3]


def test_an_iterator_that_ends_cannot_begin_again() -> None:
    stream = epochs(iter([1, 2]))
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(LoaderError, match="ended after 2 batches and cannot begin again: pass a function of the epoch"):
        next(stream)


@pytest.mark.parametrize("loader", [[], lambda epoch: [], Unsized(0), Seekable(0)])
def test_an_empty_epoch_is_an_error_not_an_endless_loop(loader: list[int]) -> None:
    with pytest.raises(LoaderError, match="gave no batch in epoch 0"):
        next(epochs(loader))


def test_what_python_iterates_by_its_index_is_a_loader() -> None:
    class OfIndex:
        def __getitem__(self, index: int) -> int:
            if index == 2:
                raise IndexError(index)
            return index

    assert list(islice(epochs(cast("Any", OfIndex())), 5)) == [0, 1, 0, 1, 0]


def test_what_gives_no_batches_at_all_is_named() -> None:
    with pytest.raises(LoaderError, match="the loader is int: pass an iterable, or a function of the epoch number"):
        next(epochs(cast("Any", 5)))
