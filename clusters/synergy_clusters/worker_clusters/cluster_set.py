"""The worker clusters: a folder with a kubeconfig for each, as a mounted Secret is one."""

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LOG = logging.getLogger(__name__)
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One cluster's file. `digest` changes with its content."""

    path: Path
    digest: str


class ClusterSet:
    """Reads the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told: set[str] = set()

    def read(self) -> Mapping[str, Kubeconfig]:
        """The clusters by name. A file whose name cannot be a cluster's is left out and logged once. Raises OSError if
        the folder cannot be read."""
        found: dict[str, Kubeconfig] = {}
        for path in sorted(self._folder.iterdir()):
            if path.name.startswith(".") or not path.is_file():
                continue  # a mounted Secret has hidden folders with its versions
            if _NAME.fullmatch(path.name):
                found[path.name] = Kubeconfig(path, hashlib.sha256(path.read_bytes()).hexdigest())
            elif path.name not in self._told:
                self._told.add(path.name)
                _LOG.error("%r is no cluster's name: use small letters, digits and dashes, 63 at most", path.name)
        return found
