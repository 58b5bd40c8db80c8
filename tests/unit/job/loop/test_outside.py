"""Outside a cluster the library is not there; wrong arguments are told anywhere."""

import ast
import threading
from pathlib import Path
from typing import Any

import pytest

import synergy_job


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYNERGY_JOB", raising=False)
    monkeypatch.delenv("SYNERGY_PROFILE_SOCKET", raising=False)


def test_one_epoch_unless_steps_are_given() -> None:
    assert list(synergy_job.iterate(["a", "b"])) == ["a", "b"]
    assert list(synergy_job.iterate(["a", "b"], steps=5)) == ["a", "b", "a", "b", "a"]


def test_neither_checkpoint_nor_thread() -> None:
    def never(*args: object) -> None:
        raise AssertionError("called")

    before = threading.active_count()
    for _ in synergy_job.iterate([1, 2], save=never, load=never, checkpoint_every_steps=1):
        assert threading.active_count() == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"save": print}, "give both save and load or neither"),
        ({"load": dict}, "give both save and load or neither"),
        ({"save": "model.pkl", "load": dict}, "save is str: it must be a function"),
        ({"save": print, "load": 3}, "load is int: it must be a function"),
        ({"steps": 0}, "steps is 0: it must be greater than 0"),
        ({"save": print, "load": dict, "checkpoint_every_steps": 0}, "checkpoint_every_steps is 0"),
        ({"save": print, "load": dict, "checkpoint_every_seconds": -1}, "checkpoint_every_seconds is -1"),
        ({"checkpoint_every_steps": 5}, "checkpoint_every_steps needs save and load"),
        ({"save_on": "none"}, "save_on is 'none': it must be 'first' or 'all'"),
    ],
)
def test_a_wrong_argument_is_named_at_once(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        synergy_job.iterate([1], **arguments)


@pytest.mark.parametrize("package", ["job/synergy_job", "profiler-job/synergy_profiler"])
def test_the_users_image_may_have_an_old_python(package: str) -> None:
    files = sorted((Path(__file__).parents[4] / package).rglob("*.py"))
    assert files
    for file in files:
        ast.parse(file.read_text(), str(file), feature_version=(3, 8))
