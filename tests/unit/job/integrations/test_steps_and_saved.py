"""The framework-free half of the integrations."""

from pathlib import Path

import pytest

import synergy_job
from synergy_job.checkpoints.saved import Saved
from synergy_job.integrations.steps import Steps, finite
from synergy_job.loop.script import abandon


def steps() -> Steps:
    return Steps(save=lambda _: None, load=lambda: None, epoch_steps=3)


def test_a_framework_outside_a_cluster_makes_as_many_steps_as_it_likes() -> None:
    made = steps()
    assert all(made.next() for _ in range(100))
    made.end("done", begun=True)
    assert not made.next()
    made.end("again", begun=False)


def test_finish_of_the_script_ends_the_framework() -> None:
    made = steps()
    assert made.next()
    synergy_job.finish("enough")
    assert not made.next()


def test_pauses_need_a_loop_and_are_closed_with_it() -> None:
    made = steps()
    made.next()
    made.pause(lambda: synergy_job.pause("evaluation"))
    made.pause(lambda: pytest.fail("a pause lasts already"))
    made.end("done", begun=True)
    made.pause(lambda: pytest.fail("the loop is over"))


def test_abandon_outside_the_loop_does_nothing() -> None:
    abandon("never begun")


def test_only_known_values_are_reported() -> None:
    assert finite({"loss": 1, "epoch": 2}, {"loss": "loss", "learning_rate": "lr"}) == {"loss": 1.0}


def test_the_newest_two_checkpoints_are_kept(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    assert saved.newest() is None
    for step in (1, 2, 3):
        (tmp_path / f"step-{step}").mkdir()
        (tmp_path / f"step-{step}" / "weights").write_text("w")
        saved.record(step, f"step-{step}", order=step)
    newest = Saved(tmp_path).newest()
    assert newest is not None
    assert (newest["step"], newest["order"]) == (3, 3)
    assert sorted(path.name for path in tmp_path.glob("step-*")) == ["step-2", "step-3"]


def test_old_checkpoints_may_be_files_or_gone(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    for step in range(1, 5):
        (tmp_path / f"{step}.ckpt").write_text("w")
        saved.record(step, f"{step}.ckpt")
        if step == 3:
            (tmp_path / "2.ckpt").unlink()
    assert sorted(path.name for path in tmp_path.glob("*.ckpt")) == ["3.ckpt", "4.ckpt"]


def test_a_framework_that_keeps_one_checkpoint_may_remove_the_recorded_one(tmp_path: Path) -> None:
    """As `save_total_limit=1` of a Trainer does while it writes the next one."""
    saved = Saved(tmp_path)
    for step in (1, 2, 3):
        for old in tmp_path.glob("*.ckpt"):
            old.unlink()
        (tmp_path / f"{step}.ckpt").write_text("w")
        saved.record(step, f"{step}.ckpt")
    newest = saved.newest()
    assert newest is not None
    assert newest["step"] == 3


def test_checkpoints_that_the_framework_writes_for_itself_are_used_and_never_removed(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    for step, own in ((1, True), (2, False), (3, False), (4, True), (4, True), (5, True), (6, True)):
        (tmp_path / f"{step}.ckpt").write_text("w")
        saved.record(step, f"{step}.ckpt", own=own)
        newest = saved.newest()
        assert newest is not None
        assert newest["step"] == step
    assert sorted(path.name for path in tmp_path.glob("*.ckpt")) == ["2.ckpt", "3.ckpt", "5.ckpt", "6.ckpt"]


def test_a_checkpoint_that_is_gone_is_an_error_that_names_it(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    (tmp_path / "a").write_text("w")
    saved.record(1, "a")
    (tmp_path / "a").unlink()
    with pytest.raises(synergy_job.CheckpointError, match=r"/a is gone: restore it, or delete .*synergy_job.pkl"):
        saved.newest()
