"""The framework-free half of the integrations."""

from collections.abc import Callable
from pathlib import Path

import pytest

import synergy_job
from synergy_job.checkpoints.saved import Saved
from synergy_job.integrations.steps import Steps, check_processes, finite
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


def test_a_framework_has_to_see_all_processes_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    check_processes(1, "outside a gang")
    monkeypatch.setenv("WORLD_SIZE", "2")
    check_processes(2, "all are there")
    with pytest.raises(ValueError, match="the job has 2 processes, but the framework trains with 1: give it both"):
        check_processes(1, "give it both")


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


@pytest.fixture
def as_run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """From now on this process is a worker of that run."""

    def become(run: int, job: str = "uid-1") -> None:
        for name, value in {"JOB": "j", "NAMESPACE": "team", "JOB_UID": job, "RUN": str(run)}.items():
            monkeypatch.setenv(f"SYNERGY_{name}", value)

    return become


def test_no_two_runs_write_to_one_name(tmp_path: Path, as_run: Callable[..., None]) -> None:
    names = []
    for run, job in ((1, "uid-1"), (2, "uid-1"), (1, "uid-2")):
        as_run(run, job)
        names += [Saved(tmp_path).begin(20), Saved(tmp_path).begin(20, ".ckpt")]
    assert len({*names}) == 6


@pytest.mark.parametrize(("run", "job"), [(2, "uid-1"), (1, "uid-2")])
def test_a_save_begins_only_where_no_newer_run_has_the_folder(
    tmp_path: Path, as_run: Callable[..., None], run: int, job: str
) -> None:
    as_run(1)
    Saved(tmp_path).begin(1)
    as_run(run, job)
    Saved(tmp_path).begin(1)
    as_run(1)
    with pytest.raises(synergy_job.FencedError, match="belongs to a newer run"):
        Saved(tmp_path).begin(2)


def test_what_was_begun_and_not_recorded_is_removed_but_for_that_of_newer_runs(
    tmp_path: Path, as_run: Callable[..., None]
) -> None:
    saved, left = Saved(tmp_path), {}
    for run in (1, 2, 3):
        as_run(run)
        left[run] = [saved.begin(5, ".ckpt"), saved.begin(6)]
    (tmp_path / ".synergy_job.pkl.versions" / "run-000001.00000003").unlink()
    as_run(2)
    for name in (*left[1], *left[2], *left[3], "step-9.ckpt"):
        (tmp_path / name).write_text("w")
    recorded = [saved.begin(step, ".ckpt") for step in (7, 8)]
    for step, name in zip((7, 8), recorded, strict=True):
        (tmp_path / name).write_text("w")
        saved.record(step, name)
    assert {path.name for path in tmp_path.glob("step-*")} == {*left[3], *recorded, "step-9.ckpt"}
