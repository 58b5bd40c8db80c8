"""Showing a job in the background until it has ended."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from html import escape
from typing import Any, cast

from kube_synergy import background
from kube_synergy.errors import SynergyError
from kube_synergy.show.card import card
from kube_synergy.status import JobStatus

States = Callable[[], AsyncIterator[JobStatus]]
PROGRESS_S = 30.0
"""How often a line is printed while neither phase nor reason changes: the seconds and steps in it always do."""


class Watch:
    """What shows a job. It ends with the job; `stop` ends it before."""

    def __init__(self, states: States, name: str, widget: Any | None) -> None:
        self._name = name
        self.widget = widget
        """The `ipywidgets.HTML` of a notebook; None elsewhere."""
        self._line = ""
        self._printed = ("", 0.0)
        self._future = background.start(self._follow(states))

    @property
    def text(self) -> str:
        """The newest line about the job."""
        return self._line

    def stop(self) -> None:
        """Show no more of it; the job goes on."""
        self._future.cancel()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until nothing more will be shown. Raises TimeoutError."""
        self._future.result(timeout_s)

    async def _follow(self, states: States) -> None:
        try:
            async with aclosing(cast(Any, states())) as found:
                async for status in found:
                    self._show(str(status), card(status), f"{status.phase}: {status.reason}")
        except SynergyError as error:
            self._show(str(error), f"<b>{escape(self._name)}</b> {escape(str(error))}", str(error))

    def _show(self, line: str, html: str, state: str) -> None:
        if self.widget is not None:
            self.widget.value = html
        elif state != self._printed[0] or (line != self._line and time.monotonic() >= self._printed[1] + PROGRESS_S):
            print(f"{self._name}: {line}", flush=True)  # noqa: T201 - this is what the user asked for
            self._printed = state, time.monotonic()
        self._line = line

    def _ipython_display_(self) -> None:
        """Jupyter calls this for the last value of a cell."""
        if self.widget is not None:
            from IPython.display import display  # noqa: PLC0415 - only where it runs

            display(self.widget)  # type: ignore[no-untyped-call]


def watch(states: States, name: str) -> Watch:
    """Begin to show the job: with a widget in a notebook that has ipywidgets, else with lines."""
    return Watch(states, name, _new_widget() if in_notebook() else None)


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which can show HTML."""
    try:
        from IPython import get_ipython  # noqa: PLC0415 - a program that has no IPython is no notebook
    except ModuleNotFoundError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _new_widget() -> Any | None:
    try:
        from ipywidgets import HTML  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError:
        return None
    return HTML()
