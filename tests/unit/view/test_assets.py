"""The files of others are those that their table tells of, and go into the wheel with their licences."""

import hashlib
import re
from importlib import resources

from synergy_view import assets


def test_the_library_is_the_one_that_the_table_names() -> None:
    folder = resources.files(assets)
    table = folder.joinpath("README.md").read_text(encoding="utf-8")
    (row,) = [line for line in table.splitlines() if line.startswith(f"| `{assets.ECHARTS}`")]
    library = folder.joinpath(assets.ECHARTS).read_bytes()
    assert f"`{hashlib.sha256(library).hexdigest()}`" in row
    version = re.search(rb'\.version="([\d.]+)",t\.zrUtil', library)
    assert version is not None
    assert f"| {version[1].decode()} |" in row
    for licence in re.findall(r"`((?:LICENSE|NOTICE)-\w+)`", row):
        assert folder.joinpath(licence).is_file()


def test_the_library_can_stand_inside_a_page() -> None:
    """Nothing in it would end the script element that it is embedded in."""
    library = resources.files(assets).joinpath(assets.ECHARTS).read_text(encoding="utf-8").lower()
    assert "</script" not in library
    assert "<!--" not in library
