"""Outputs in the documentation are those that were recorded."""

from pathlib import Path

import pytest

from support import recorded
from support.documentation import pages

PAGES = [page for page in pages() if recorded.marks(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_its_outputs_as_they_were_recorded(page: Path) -> None:
    text = page.read_text("utf-8")
    assert recorded.filled(text) == text, "run PYTHONPATH=tests .venv/bin/python -m support.recorded"
    assert len(recorded.marks(text)) == text.count("-->\n```text\n"), "each mark has its block below it"


def test_every_recorded_output_is_shown() -> None:
    shown = {name for page in PAGES for name in recorded.marks(page.read_text("utf-8"))}
    assert shown == {path.stem for path in recorded.FOLDER.glob("*.txt")}


def test_what_differs_from_run_to_run_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "ns-1f/a 2026-11-24 04:13:08  since 2026-11-24T04:13:08.123Z  \nin /tmp/x/ns-1f\n\n"
    assert recorded.normalised(text, {"ns-1f": "team", "/tmp/x/ns-1f": "past"}) == (
        "team/a 2026-01-01 12:00:00  since 2026-01-01T12:00Z\nin past\n"
    )


def test_only_a_run_that_records_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "FOLDER", tmp_path / "recorded")
    monkeypatch.delenv(recorded.VARIABLE, raising=False)
    recorded.record("queue", "kubectl synergy queue", "no job waits", {})
    assert not (tmp_path / "recorded").exists()
    monkeypatch.setenv(recorded.VARIABLE, "1")
    recorded.record("queue", "kubectl synergy queue", "no job waits", {})
    before, after = "before\n<!-- recorded: queue -->\n```text\n", "```\nafter\n```text\nother\n```\n"
    assert recorded.filled(f"{before}old\n{after}") == f"{before}$ kubectl synergy queue\nno job waits\n{after}"


def test_an_output_that_was_never_recorded_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    with pytest.raises(FileNotFoundError, match="queue"):
        recorded.filled("<!-- recorded: queue -->\n```text\n```\n")
