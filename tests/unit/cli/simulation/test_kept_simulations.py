"""`kube-synergy reproduce --keep`: what was interrupted goes on where it was, and takes nothing that is not so."""

import json
import pickle
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from synergy_cli.errors import BadInputError
from synergy_cli.main import main
from synergy_cli.simulation import kept as kept_module
from synergy_cli.simulation.kept import CODE, Kept, digest_of, fingerprint
from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.model.snapshot import Tenant
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.sharing.truth import Truth
from synergy_simulator.grid import Case, run_all, run_one
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions import sweeps
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
    return Kept.of(str(tmp_path / "kept"))


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


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_a_simulation_is_made_of_makes_it_another(case: Case, change: Callable[[Case], Case]) -> None:
    assert digest_of(change(case), CODE) != digest_of(case, CODE)
    assert digest_of(change(case), CODE) == digest_of(change(case), CODE)


def test_it_is_found_by_its_values(case: Case) -> None:
    """Tasks share their profiles and models; these have each their own, as they may in another process."""
    apart = tuple(pickle.loads(pickle.dumps(task)) for task in case.workload.tasks)
    same = replace(case, label="called otherwise", workload=replace(case.workload, tasks=apart))
    assert digest_of(same, CODE) == digest_of(case, CODE)


def test_code_is_told_by_its_sources_and_by_what_it_computes_with(tmp_path: Path) -> None:
    def package(text: str, file: str = "deep/one.py") -> types.ModuleType:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text(text)
        made = types.ModuleType("made")
        made.__path__ = [str(folder)]
        return made

    first, libraries = package("a = 1"), kept_module.LIBRARIES
    assert fingerprint([first], libraries) == fingerprint([package("a = 1")], libraries)
    others = [[package("a = 2")], [package("a = 1", "deep/two.py")], [first, package("")]]
    prints = [fingerprint([first], libraries), *(fingerprint(packages, libraries) for packages in others)]
    prints.append(fingerprint([first], libraries[1:]))
    assert len(set(prints)) == len(prints)


def test_what_is_kept_is_what_was_found(kept: Kept, case: Case) -> None:
    assert kept.found([case]) == [None]
    (found,) = run_all([case], run=kept.run_one)
    assert kept.found([replace(case, label="other"), case]) == [replace(found, label="other"), found]
    assert replace(kept, code="another version").found([case]) == [None]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_kept_too(
    kept: Kept, case: Case, monkeypatch: pytest.MonkeyPatch, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    def odd(case: Case) -> Summary:
        found = run_one(case)
        return replace(found, metrics=replace(found.metrics, avg_ftf=value, estimate_error=value))

    monkeypatch.setattr(kept_module, "run_one", odd)
    found = kept.run_one(case)
    (again,) = kept.found([case])
    assert repr(again) == repr(found)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("content", [b"", b"{}", b"[1, 2", b"\xff\xfe", b'{"label": "one"}'])
def test_what_is_damaged_is_simulated_anew(
    kept: Kept, case: Case, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.run_one(case)
    (file,) = kept.folder.iterdir()
    file.write_bytes(content)
    assert kept.found([case]) == [None]
    assert capsys.readouterr().err == f"warning: --keep: {file}: is damaged; it is simulated anew\n"
    anew = kept.run_one(case)
    assert kept.found([case]) == [anew]


def test_what_cannot_be_kept_serves_all_the_same(kept: Kept, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    kept.folder.rmdir()
    assert kept.run_one(case).jcts == run_one(case).jcts
    assert "No such file or directory; it is not kept" in capsys.readouterr().err
    kept.folder.mkdir()
    (kept.folder / f"{digest_of(case, CODE)}.json").mkdir()
    assert kept.found([case]) == [None]
    assert "Is a directory; it is simulated anew" in capsys.readouterr().err


def test_a_process_with_other_code_says_so(kept: Kept, case: Case) -> None:
    changed = replace(kept, code="what the first process began with")
    with pytest.raises(BadInputError, match="the code was changed after this run began"):
        run_all([case, replace(case, label="two")], processes=2, run=changed.run_one)


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
