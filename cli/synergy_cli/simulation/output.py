"""Files that are written whole or not at all, and what is printed."""

import csv
import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from synergy_cli.errors import BadInputError
from synergy_simulator.report.metrics import PER_JOB_COLUMNS, JobRow


def check_writable(option: str, path: str | None) -> None:
    """Raise BadInputError, before the work begins, where the file could not be written."""
    if path is None:
        return
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise BadInputError(f"{option}: there is no folder {folder}; make it first")
    if Path(path).is_dir():
        raise BadInputError(f"{option}: {path} is a folder; give the name of a file")
    if not os.access(folder, os.W_OK):
        raise BadInputError(f"{option}: the folder {folder} cannot be written to")


def write_whole(path: str, text: str) -> None:
    """Write a file atomically: no reader sees half of it."""
    target = Path(path).resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException as error:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, path) from error  # not the temporary file's name
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def per_job_csv(rows: Sequence[JobRow]) -> str:
    """A line per job that is done."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(PER_JOB_COLUMNS)
    writer.writerows(astuple(row) for row in rows)
    return text.getvalue()


@contextmanager
def progress_bar(what: str, total: int) -> Iterator["Bar"]:
    """A bar on stderr where that is a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Bar(progress, progress.add_task(what, total=total))


class Bar:
    """Shows progress."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def __call__(self, done: int) -> None:
        """Show that so much is done."""
        self._progress.update(self._task, completed=done)
