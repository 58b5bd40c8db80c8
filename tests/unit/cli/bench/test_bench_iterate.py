"""`bench iterate` measures a worker's loop and leaves the process as it was."""

import json
import os
import signal

import pytest
from click.testing import CliRunner

from synergy_cli.main import main


def test_a_step_of_a_worker_takes_more_than_one_of_a_bare_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    before, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
    result = CliRunner().invoke(main, ["bench", "iterate", "--steps", "400", "--rate", "20000", "--json"])
    report = json.loads(result.stdout)
    assert (report["steps"], report["rate"]) == (400, 20000)
    assert 0 < report["bare_us"] < report["iterate_us"]
    assert report["added_us"] == pytest.approx(report["iterate_us"] - report["bare_us"])
    assert (dict(os.environ), signal.getsignal(signal.SIGTERM)) == (before, handler)


def test_the_sentence_names_the_rate() -> None:
    result = CliRunner().invoke(main, ["bench", "iterate", "--steps", "200", "--rate", "20000"])
    assert "to a step at 20000 steps/s (mean of 200;" in result.output


def test_too_few_steps_are_refused_with_the_option() -> None:
    result = CliRunner().invoke(main, ["bench", "iterate", "--steps", "1"])
    assert result.exit_code == 2
    assert "--steps" in result.output
