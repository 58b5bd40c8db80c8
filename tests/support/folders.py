"""Each folder of tests ends what it has started.

Fixtures of the scope `package` end with the folder of their `conftest.py`. pytest does so for folders with an
`__init__.py` only: elsewhere they last as long as the session. A suite's operator would then act on the objects of the
suites after it. (An `__init__.py` is no way out: the tests of `operator` would hide the module of that name.)
"""

from pathlib import Path

import pytest


class Folder(pytest.Package):
    """A folder without an `__init__.py`."""

    def setup(self) -> None:
        """There is no module to import."""


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A folder without an `__init__.py` counts as a package too. The others are pytest's own matter."""
    if (path / "__init__.py").exists():
        return None
    folder: Folder = Folder.from_parent(parent, path=path)
    return folder
