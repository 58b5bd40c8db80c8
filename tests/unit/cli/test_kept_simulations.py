"""`kube-synergy reproduce --keep`: what was interrupted goes on where it was, and takes nothing that is not so."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from synergy_cli.main import main
from synergy_cli.simulation import kept as kept_module
from synergy_cli.simulation.kept import Kept
from synergy_simulator.generator import Split, generate
from synergy_simulator.grid import Case, run_one
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.models import built_in_profiles
from synergy_simulator.options import Options
from synergy_simulator.reproductions import sweeps
from synergy_simulator.workload import build_workload


@pytest.fixture
def case() -> Case:
    profiles = built_in_profiles()
    trace = generate(
        12, seed=3, split=Split(20, 70, 10), models=profiles.models, jobs_per_hour=6.0, gpu_mix={1: 0.7, 4: 0.3}
    )
    return Case("one", build_workload(trace, profiles, homogeneous(1)), Options(policy="las", record=True))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of the cases that are simulated."""
    labels: list[str] = []

    def counted(case: Case) -> object:
        labels.append(case.label)
        return run_one(case)

    monkeypatch.setattr(kept_module, "run_one", counted)
    return labels


def test_what_is_kept_is_what_was_found(tmp_path: Path, case: Case, made: list[str]) -> None:
    kept = Kept(tmp_path)
    found = kept.run_one(case)
    again = kept.run_one(replace(case, label="called otherwise"))
    assert again == replace(found, label="called otherwise")
    assert made == ["one"]


def test_other_work_other_options_and_other_code_are_simulated(
    tmp_path: Path, case: Case, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(tmp_path)
    kept.run_one(case)
    first, *others = case.workload.tasks
    longer = replace(case.workload, tasks=(replace(first, steps=first.steps + 1), *others))
    kept.run_one(replace(case, label="work", workload=longer))
    kept.run_one(replace(case, label="options", options=replace(case.options, round_s=301.0)))
    monkeypatch.setattr(kept_module, "_code", lambda: b"another version")
    kept.run_one(replace(case, label="code"))
    assert made == ["one", "work", "options", "code"]


def test_it_is_found_by_its_values(tmp_path: Path, case: Case, made: list[str]) -> None:
    """Tasks share their profiles and models; these have each their own."""
    apart = tuple(pickle.loads(pickle.dumps(task)) for task in case.workload.tasks)
    Kept(tmp_path).run_one(case)
    Kept(tmp_path).run_one(replace(case, workload=replace(case.workload, tasks=apart)))
    assert made == ["one"]


def test_every_process_finds_it(tmp_path: Path, case: Case, made: list[str]) -> None:
    """Another process has other objects, and other hashes of strings."""
    file = tmp_path / "case.pickle"
    file.write_bytes(pickle.dumps(case))
    kept = tmp_path / "kept"
    script = f"""
import pickle
from pathlib import Path
from synergy_cli.simulation.kept import Kept
kept = Kept(Path({str(kept)!r}))
kept.check()
kept.run_one(pickle.loads(Path({str(file)!r}).read_bytes()))
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    Kept(kept).run_one(case)
    assert made == []
    assert len(list(kept.iterdir())) == 1


def test_what_is_damaged_is_named(tmp_path: Path, case: Case) -> None:
    kept = Kept(tmp_path)
    kept.run_one(case)
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text()[:-100])
    with pytest.raises(kept_module.BadInputError, match=f"--keep: {file} is damaged; remove it"):
        kept.run_one(case)


def _reproduce(folder: Path, *arguments: str) -> Result:
    plot = folder / "plot.html"
    return CliRunner().invoke(main, ["reproduce", *arguments, "--processes", "1", "--plot", str(plot)])


def test_a_reproduction_goes_on(tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "QUICK", sweeps.Scale(1, 60, (20, 40)))
    arguments = ("synergy-fig9", "--quick", "--json", "--keep", str(tmp_path / "new" / "kept"))
    first = _reproduce(tmp_path, *arguments)
    assert first.exit_code == 0, first.output
    count = len(made)
    assert count > 1
    next((tmp_path / "new" / "kept").iterdir()).unlink()  # it was interrupted before this one
    second = _reproduce(tmp_path, *arguments)
    assert len(made) == count + 1
    assert json.loads(second.stdout)["rows"] == json.loads(first.stdout)["rows"]


def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = _reproduce(tmp_path, "synergy-fig9", "--quick", "--keep", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert result.stderr == f"error: --keep: {tmp_path / 'file'}: File exists\n"
