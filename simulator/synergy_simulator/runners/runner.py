"""What every place for simulations does."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar


class Labelled(Protocol):
    """Something to compute, with a name for messages. It can be pickled."""

    @property
    def label(self) -> str:
        """The name."""
        ...


Item = TypeVar("Item", bound=Labelled)
Found = TypeVar("Found")


class Runner(Protocol):
    """A place where a function is called for each of many items."""

    def run(
        self, function: Callable[[Item], Found], items: Sequence[Item], done: Callable[[int, Found], None]
    ) -> list[Found]:
        """Call `function` for each item; the answers are in the items' order.

        Args:
            function: of a module, so that other processes find it by its name. Equal items give equal answers.
            items: independent of each other.
            done: called in this process with the index and the answer of each item, as soon as it is there.

        Raises:
            RunnerError: the place fails.
            Exception: the first that `function` raises. It ends everything, as an interruption does.
        """
        ...


def nothing(_index: int, _found: object) -> None:
    """For callers that wait for the end."""
