"""Files on a storage that several processes write: each step is atomic, and on the disk before the next one."""

from __future__ import annotations

import os


def sync_folder(folder: str) -> None:
    """Put the names in a folder on the disk."""
    descriptor = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make(beside: str, name: str) -> bool:
    """Give the file its name; False where the name is taken. Never replaces."""
    try:
        os.link(beside, name)
    except FileExistsError:
        return False
    except OSError:  # no hard links here: made without its content for a moment, which another job takes for foreign
        try:
            descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text(beside))
            file.flush()
            os.fsync(file.fileno())
    return True


def touch(name: str) -> None:
    """Make an empty file, where there is none, and put its name on the disk."""
    if not os.path.exists(name):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o666))
        sync_folder(os.path.dirname(name))


def remove(name: str) -> None:
    """Remove the file, where there is one."""
    try:
        os.unlink(name)
    except FileNotFoundError:
        return


def text(name: str) -> str:
    """The text of a file; empty where there is none."""
    try:
        with open(name, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""
