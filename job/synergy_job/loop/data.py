"""The stream of batches: epoch after epoch over the user's loader, begun where a checkpoint left."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from typing import Protocol, TypeAlias

    T_co = TypeVar("T_co", covariant=True)

    class SeekableLoader(Protocol[T_co]):
        """A loader that can begin in the middle of an epoch without making the batches before it."""

        def __len__(self) -> int:
            """Batches in an epoch."""

        def iter_from(self, epoch: int, first: int) -> Iterable[T_co]:
            """The batches of `epoch` (0, 1, ...) from number `first` on."""

    Loader: TypeAlias = Iterable["T"] | Callable[[int], Iterable["T"]] | SeekableLoader["T"]

T = TypeVar("T")


class LoaderError(ValueError):
    """The loader cannot give the batches that are left to train on; the message says what to pass instead."""


def epochs(
    loader: Loader[T], done: int = 0, learned: Callable[[int], bool] = lambda _: False
) -> Generator[T, None, None]:
    """Batches without end: epoch after epoch, the first `done` batches of training left out.

    `loader` is one of

    - an iterable that can be iterated again (a list, a PyTorch `DataLoader`), once for each epoch; where it or its
      `sampler` or `dataset` has `set_epoch(epoch)`, that is called first, as PyTorch's distributed sampler asks for;
    - a function of the epoch number that returns an iterable;
    - a `SeekableLoader`: `len()` and `iter_from(epoch, first)`.

    Epochs are taken to be equally long: with L batches in an epoch, training goes on in epoch `done // L` at batch
    `done % L`. The batches of that epoch before it are made and thrown away (a `SeekableLoader` begins there). Where
    the loader has no `len()`, L is found by going through the first epoch. `learned(L)` is called at its end; the
    batches end there if it returns True.

    An iterator that ends and has `reset()`, as DALI's have, is reset after each epoch.

    Raises `LoaderError` when an epoch has no batch or when the loader can be gone through only once and has ended.
    """
    seekable = hasattr(loader, "iter_from")
    length = epoch_steps(loader)
    epoch, skip = divmod(done, length) if length else (0, done)
    while True:
        leave_out = 0 if seekable else skip
        made = 0
        for made, batch in enumerate(_epoch(loader, epoch, skip), start=1):
            if made > leave_out:
                yield batch
        if made == 0:
            raise LoaderError(f"the loader gave no batch in epoch {epoch} after batch {skip if seekable else 0}")
        if length is None and epoch == 0 and learned(made):
            return
        if hasattr(loader, "__next__") and callable(getattr(loader, "reset", None)):
            cast("Any", loader).reset()
        elif hasattr(loader, "__next__"):
            raise LoaderError(
                f"the loader ended after {made} batches and cannot begin again: pass a function of the epoch number "
                "that makes it, such as lambda epoch: make_batches()"
            )
        if epoch == 0 and leave_out > made:
            epoch, skip = divmod(leave_out, made)
        else:
            epoch, skip = epoch + 1, 0


def one_epoch(loader: Loader[T]) -> Iterable[T]:
    """The batches of epoch 0."""
    return _epoch(loader, 0, 0)


def epoch_steps(loader: Any) -> int | None:
    """Batches in an epoch, None where the loader does not know."""
    try:
        return len(loader) or None
    except TypeError:
        return None


def _epoch(loader: Any, epoch: int, first: int) -> Iterable[Any]:
    parts: tuple[Any, ...] = (loader, getattr(loader, "sampler", None), getattr(loader, "dataset", None))
    for part in parts:
        if hasattr(part, "set_epoch"):
            part.set_epoch(epoch)
    if hasattr(loader, "iter_from"):
        batches = loader.iter_from(epoch, first)
    elif hasattr(loader, "__iter__") or hasattr(loader, "__getitem__"):
        batches = loader
    elif callable(loader):
        batches = loader(epoch)
    else:
        raise LoaderError(
            f"the loader is {type(loader).__name__}: pass an iterable, or a function of the epoch number that makes one"
        )
    return cast("Iterable[Any]", batches)
