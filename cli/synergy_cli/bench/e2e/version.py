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
        others = [path for path in [os.environ.get("PYTHONPATH")] if path]
        return {"PYTHONPATH": os.pathsep.join([*map(str, folders), *others])}

    @property
    def definitions(self) -> list[Path]:
        """The files of its custom resources."""
        return sorted((self.checkout / "crds").glob("*.yaml"))

    @property
    def chart(self) -> Path:
        """The folder of its chart."""
        return self.checkout / "helm" / "kube-synergy"

    @property
    def missing(self) -> list[str]:
        """What the product consists of and is not there."""
        packages = {package.parent.name for package in self.checkout.glob("*/synergy_*/__init__.py")}
        parts = {
            **{name: name in packages for name in _PROGRAMS},
            "crds": bool(self.definitions),
            "the chart": (self.chart / "Chart.yaml").exists(),
        }
        return [name for name, there in parts.items() if not there]
