"""The pinned versions of everything the devcluster runs, read from versions.toml."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Versions:
    """Pinned versions, each without a leading ``v``."""

    go_minimum: str
    etcd: str
    kubernetes: str
    coredns: str
    helm: str
    kwok: str
    kind: str
    kubeconform: str
    vale: str


@cache
def pinned() -> Versions:
    """Return the versions this release of the devcluster is built for."""
    return Versions(**tomllib.loads(files(__package__).joinpath("versions.toml").read_text(encoding="utf-8")))


def find_version(text: str) -> str | None:
    """Return the first dotted version in a program's ``--version`` output, without ``v``, or None.

    >>> find_version("Kubernetes v1.36.3")
    '1.36.3'
    """
    match = re.search(r"(?<![\w.])v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)", text)
    return match.group(1) if match else None


def at_least(version: str, minimum: str) -> bool:
    """Say whether dotted ``version`` is ``minimum`` or newer, comparing as many parts as ``minimum`` has."""
    wanted = [int(part) for part in minimum.split(".")]
    given = [int(part) for part in re.findall(r"\d+", version)[: len(wanted)]]
    return given >= wanted
