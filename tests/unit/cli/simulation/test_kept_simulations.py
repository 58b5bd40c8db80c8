"""`--keep`: what was interrupted goes on where it was, and takes nothing that is not so."""

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from support.simulator.steps import without_times
from synergy_cli.main import main
from synergy_cli.simulation.kept import Kept, digest_of
from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.model.snapshot import Tenant
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.sharing.truth import Truth
from synergy_simulator.forecast.calibration import Calibration, calibrate
from synergy_simulator.grid import Case, run_all, run_one
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.own_policies import PolicyError
from synergy_simulator.reproductions import sweeps
from synergy_simulator.runners.processes import Processes
from synergy_simulator.runners.runner import Found, Item, nothing
from synergy_simulator.workloads.generator import Split, generate
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Task, build_workload


@pytest.fixture
def case() -> Case:
    profiles = built_in_profiles()
    split = Split(20, 70, 10)
    trace = generate(12, seed=3, split=split, models=profiles.models, jobs_per_hour=6.0, gpu_mix={1: 0.7, 4: 0.3})
    return Case("one", build_workload(trace, profiles, homogeneous(1)), Options.of(policy="las", record=True))


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(Kept.folder_of(str(tmp_path / "kept")), Processes(1))


def _with_first(case: Case, change: Callable[[Task], Task]) -> Case:
    first, *others = case.workload.tasks
    return replace(case, workload=replace(case.workload, tasks=(change(first), *others)))


def _faster(task: Task) -> Task:
    ((gpu_type, profile),) = task.profiles.items()
    speeds = tuple(tuple(speed + 1e-9 for speed in row) for row in profile.steps_per_s)
    return replace(task, profiles={gpu_type: replace(profile, steps_per_s=speeds)})


def _with_workload(case: Case, **changes: object) -> Case:
    return replace(case, workload=replace(case.workload, **changes))  # type: ignore[arg-type]


def _with_options(case: Case, **changes: object) -> Case:
    return replace(case, options=replace(case.options, **changes))  # type: ignore[arg-type]


CHANGES: dict[str, Callable[[Case], Case]] = {
    "more work": lambda case: _with_first(case, lambda task: replace(task, steps=task.steps + 1)),
    "a speed": lambda case: _with_first(case, _faster),
    "a later arrival": lambda case: _with_first(case, lambda task: replace(task, arrival_s=task.arrival_s + 1e-6)),
    "another cluster": lambda case: _with_workload(case, cluster=homogeneous(1, cpus_per_gpu=4.0)),
    "pairs": lambda case: _with_workload(case, pairs={"V100": PairTable({})}),
    "a round": lambda case: _with_options(case, round_s=301.0),
    "a tenant": lambda case: _with_options(case, tenants=(Tenant("a", 2.0),)),
    "the truth": lambda case: _with_options(case, truth=Truth(deviation=0.07)),
}


def _digest(case: Case) -> str:
    return digest_of((case.workload, case.options), "code")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_a_simulation_is_made_of_makes_it_another(case: Case, change: Callable[[Case], Case]) -> None:
    assert _digest(change(case)) != _digest(case)
    assert _digest(change(case)) == _digest(change(case))


def test_it_is_found_by_its_values(case: Case) -> None:
    """Tasks share their profiles and models; these have each their own, as they may in another process."""
    apart = tuple(pickle.loads(pickle.dumps(task)) for task in case.workload.tasks)
    same = replace(case, label="called otherwise", workload=replace(case.workload, tasks=apart))
    assert _digest(same) == _digest(case)


def _kept(kept: Kept, *cases: Case) -> int:
    """How many of the cases were there."""
    before = kept.taken
    kept.run(run_one, cases, nothing)
    return kept.taken - before


def test_what_is_kept_is_what_was_found(kept: Kept, case: Case) -> None:
    told: list[int] = []
    (found,) = run_all([case], runner=kept)
    assert without_times([found]) == without_times([run_one(case)])
    assert (kept.taken, kept.cases) == (0, 1)
    other, more = replace(case, label="other"), _with_options(case, round_s=301.0)
    answers = run_all([other, more, case], runner=kept, progress=told.append)
    assert (answers[0], answers[2]) == (replace(found, label="other"), found)
    assert without_times(answers[1:2]) == without_times([run_one(more)])
    assert (kept.taken, kept.cases, told) == (2, 4, [1, 2, 3])
    assert _kept(replace(kept, code="another version"), case) == 0
    with pytest.raises(PolicyError, match="'las' is another on"):  # it is not taken from the folder
        _kept(kept, replace(case, source="another file of the policy"))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_kept_too(
    kept: Kept, case: Case, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    class Odd:
        def run(
            self, function: Callable[[Item], Found], items: Sequence[Item], done: Callable[[int, Found], None]
        ) -> list[Found]:
            found: Any = function(items[0])
            odd = replace(found, metrics=replace(found.metrics, avg_ftf=value, estimate_error=value))
            done(0, odd)
            return [odd]

    (found,) = run_all([case], runner=replace(kept, place=Odd()))
    (again,) = run_all([case], runner=kept)
    assert repr(again) == repr(found)
    assert kept.taken == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("content", [b"", b"{}", b"[1, 2", b"\xff\xfe", b'{"label": "one"}'])
def test_what_is_damaged_is_simulated_anew(
    kept: Kept, case: Case, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _kept(kept, case) == 0
    (file,) = kept.folder.iterdir()
    file.write_bytes(content)
    assert _kept(kept, case) == 0
    assert capsys.readouterr().err == f"warning: --keep: {file}: is damaged; it is simulated anew\n"
    assert _kept(kept, case) == 1


def test_what_cannot_be_kept_serves_all_the_same(kept: Kept, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    _kept(kept, case)
    (file,) = kept.folder.iterdir()
    file.unlink()
    kept.folder.rmdir()
    assert without_times(run_all([case], runner=kept)) == without_times([run_one(case)])
    assert "No such file or directory; it is not kept" in capsys.readouterr().err
    file.mkdir(parents=True)
    assert _kept(kept, case) == 0
    assert "Is a directory; it is simulated anew" in capsys.readouterr().err


def test_a_calibration_goes_on(kept: Kept, case: Case) -> None:
    def calibrated(runner: Kept) -> Calibration:
        return calibrate(case.workload, case.options, moments=3, draws=2, runner=runner)

    first = calibrated(kept)
    assert first == calibrate(case.workload, case.options, moments=3, draws=2, runner=Processes(2))
    next(kept.folder.iterdir()).unlink()
    assert calibrated(kept) == first
    assert (kept.taken, kept.cases) == (2, 6)
    calibrate(case.workload, case.options, moments=3, draws=3, runner=kept)
    assert kept.taken == 2, "other draws are other forecasts"


def _reproduce(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["reproduce", *arguments, "--plot", str(folder / "plot.html")])


def test_a_reproduction_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "QUICK", sweeps.Scale(1, 60, (20, 40)))
    kept = tmp_path / "new" / "kept"
    arguments = ("synergy-fig9", "--quick", "--json", "--keep", str(kept), "--processes", "2")
    first = _reproduce(tmp_path, *arguments)
    assert first.exit_code == 0, first.output
    count = len(list(kept.iterdir()))
    assert count > 1
    assert first.stderr == f"--keep: 0 of {count} simulations were in {kept}\n"
    next(kept.iterdir()).unlink()  # it was interrupted before this one
    second = _reproduce(tmp_path, *arguments)
    assert second.stderr == f"--keep: {count - 1} of {count} simulations were in {kept}\n"
    one, other = json.loads(first.stdout), json.loads(second.stdout)
    assert other["rows"] == one["rows"]
    assert other["differs"] == [
        *one["differs"],
        f"{count - 1} of {count} simulations were made before; their seconds are those of then.",
    ]


def test_one_without_simulations_says_that_it_keeps_nothing(tmp_path: Path) -> None:
    result = _reproduce(tmp_path, "synergy-fig5", "--quick", "--keep", str(tmp_path / "kept"))
    assert result.exit_code == 0
    assert result.stderr == "--keep: synergy-fig5 has no simulations that could be kept\n"


@pytest.mark.parametrize(
    ("name", "problem"), [("file", "{}: File exists"), ("", "is empty; give the name of a folder")]
)
def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / name) if name else ""
    result = _reproduce(tmp_path, "synergy-fig9", "--quick", "--keep", folder)
    assert result.exit_code == 2
    assert result.stderr == f"error: --keep: {problem.format(folder)}\n"
