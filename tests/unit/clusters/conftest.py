"""A hub and two worker clusters with a running controller."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.clusters.stage import Stage


@pytest_asyncio.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """The controller runs, and reaches both clusters."""
    made = Stage(tmp_path, monkeypatch)
    await made.start()
    yield made
    await made.end()
