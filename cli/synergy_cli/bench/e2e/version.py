"""Which version of the product is measured: a checkout, and its packages for the processes that run it."""

import os
from dataclasses import dataclass
from pathlib import Path

from synergy_cli.product import SOURCE

_PROGRAMS = ("synergy_operator", "synergy_extender")


@dataclass(frozen=True)
class Version:
    """A checkout of the project."""

    checkout: Path = SOURCE

    @property
    def environment(self) -> dict[str, str]:
        """What a Python process needs to import this version's packages before those that are installed."""
        if self.checkout == SOURCE:
            return {}
        folders = sorted({package.parent.parent for package in self.checkout.glob("*/synergy_*/__init__.py")})
        return {"PYTHONPATH": os.pathsep.join(map(str, folders))}

    @property
    def missing(self) -> list[str]:
        """What the product consists of and is not there."""
        packages = {package.parent.name for package in self.checkout.glob("*/synergy_*/__init__.py")}
        parts = {"crds": "crds/*.yaml", "the chart": "helm/kube-synergy/Chart.yaml"}
        absent = [name for name, pattern in parts.items() if not any(self.checkout.glob(pattern))]
        return [*(name for name in _PROGRAMS if name not in packages), *absent]
