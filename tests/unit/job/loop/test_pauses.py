"""What a preemption costs, as the job measures it."""

import time
from pathlib import Path

import pytest

from synergy_job.loop.pauses import Pauses, seconds_since_start


def test_what_raised_was_no_save() -> None:
    pauses = Pauses()
    with pytest.raises(OSError, match="full"), pauses.saving():
        raise OSError("disk full")
    assert pauses.save_seconds is None


def test_the_age_of_a_process_grows_with_the_clock() -> None:
    before = seconds_since_start()
    begun = time.monotonic()
    time.sleep(0.3)
    after = seconds_since_start()
    assert before is not None
    assert after is not None
    assert after - before == pytest.approx(time.monotonic() - begun, abs=0.1)


def test_a_name_with_brackets_and_blanks_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    fields = " ".join(["S", *["0"] * 18, "12300", "0"])
    (tmp_path / "self" / "stat").write_text(f"7 (a) R (b c) {fields}\n")
    (tmp_path / "uptime").write_text("200.5 3\n")
    age = seconds_since_start(str(tmp_path))
    assert age == pytest.approx(200.5 - 123.0), "at 100 ticks a second, as Linux has it everywhere"


@pytest.mark.parametrize("stat", [None, "", "7 (x) S 1"])
def test_a_system_that_does_not_tell(tmp_path: Path, stat: str | None) -> None:
    if stat is not None:
        (tmp_path / "self").mkdir()
        (tmp_path / "self" / "stat").write_text(stat)
        (tmp_path / "uptime").write_text("5 5")
    assert seconds_since_start(str(tmp_path)) is None
