"""Which version a release has: every place that names it must agree, and the changelog must have its section."""

import re
import tomllib
from pathlib import Path

import yaml

from synergy_devcluster.errors import BadInputError

_HEADING = re.compile(r"^## (?P<version>\S+)(?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
_PRODUCT = re.compile(r'^PRODUCT_VERSION: Final = "(?P<version>[^"]+)"$', re.MULTILINE)


def release_version(source: Path) -> str:
    """The version in `pyproject.toml`.

    Raises:
        BadInputError: another file names another version.
    """
    version = str(tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    chart = yaml.safe_load((source / "helm/kube-synergy/Chart.yaml").read_text(encoding="utf-8"))
    product = _PRODUCT.search((source / "api/synergy_api/names.py").read_text(encoding="utf-8"))
    named = {
        "helm/kube-synergy/Chart.yaml: version": chart["version"],
        "helm/kube-synergy/Chart.yaml: appVersion": chart["appVersion"],
        "api/synergy_api/names.py: PRODUCT_VERSION": product["version"] if product else None,
    }
    for field, there in named.items():
        if there != version:
            raise BadInputError(f"{field} is {there}, pyproject.toml has {version}: write the same version in both")
    return version


def release_notes(source: Path, version: str) -> str:
    """The changelog's section of the version.

    Raises:
        BadInputError: there is no such section with a date.
    """
    text = (source / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(text))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        if heading["version"] == version and heading["date"]:
            end = following.start() if following else len(text)
            return text[heading.start() : end].strip() + "\n"
    raise BadInputError(
        f"CHANGELOG.md has no section '## {version} - YYYY-MM-DD': move what is below '## Unreleased' there"
    )
