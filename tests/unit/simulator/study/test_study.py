"""The simulator from Python: what goes in, what comes out, and policies of one's own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import synergy_simulator
from synergy_cli.main import main
from synergy_core.model.snapshot import FieldError
from synergy_core.policies import POLICIES, fifo, register
from synergy_simulator import InputError, Queue, Ranking, SettingError, compare, homogeneous, load, ranked, simulate
from synergy_simulator.own_policies import PolicyError, known_policy

EXAMPLES = Path(__file__).parents[4] / "examples" / "simulation"
FILES = [str(EXAMPLES / name) for name in ("trace.csv", "profiles.json", "cluster.yaml")]
ROWS = [
    {"job_id": "a", "arrival_s": 0, "gpus": 1, "model": "m", "duration_s": 400.0},
    {"job_id": "b", "arrival_s": 10.5, "gpus": 8, "model": "m", "duration_s": 100.0, "tenant": "red"},
]


def backwards(queue: Queue) -> Ranking:
    return ranked(queue, lambda job: -job.arrival_s)


def test_every_public_name_is_there() -> None:
    assert all(hasattr(synergy_simulator, name) for name in synergy_simulator.__all__)


def test_files_rows_and_a_frame_give_the_same(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    pd.DataFrame(ROWS).to_csv(file, index=False)
    traces = (file, ROWS, pd.DataFrame(ROWS))
    found = [simulate(trace, None, homogeneous(1), mechanism="proportional", round_s=50.0) for trace in traces]
    assert all(one.rows == found[0].rows for one in found)
    jobs = found[0].jobs
    assert list(jobs["job_id"]) == ["a", "b"]
    assert list(jobs["finish_s"]) == [400.0, 500.0]
    assert list(jobs["tenant"]) == ["", "red"]


def test_rounds_are_means_of_what_is_in_use() -> None:
    rounds = simulate(ROWS, None, homogeneous(1), mechanism="proportional", round_s=300.0).rounds
    assert list(rounds["start_s"]) == [0.0, 300.0]
    assert rounds["gpus"].tolist() == pytest.approx([1.0, (100 * 1 + 100 * 8) / 200])
    assert rounds["waiting"].tolist() == pytest.approx([289.5 / 300, 0.5])
    with pytest.raises(SettingError, match="record: is False, and rounds are not kept; simulate with record=True"):
        _ = simulate(ROWS, None, homogeneous(1), record=False).rounds


def test_the_command_line_says_what_python_says() -> None:
    arguments = ["simulate", "--trace", FILES[0], "--profiles", FILES[1], "--cluster", FILES[2], "--policy", "fifo"]
    told = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    ours = simulate(*FILES, policy="fifo", mechanism="tune").metrics.document()
    timed = {"plan_mean_ms", "plan_p99_ms", "wall_s"}
    assert {key: told[key] for key in told.keys() - timed} == {key: ours[key] for key in ours.keys() - timed}


def test_a_comparison_is_a_frame_and_a_page() -> None:
    found = compare(ROWS, None, homogeneous(1), policies=["fifo", backwards], processes=1)
    name = f"{__name__}:backwards"
    assert list(found.frame.index) == ["fifo on tune", f"{name} on tune"]
    assert "<iframe" in found._repr_html_()
    assert "<html" in found.report("two")


def test_an_own_policy_orders_the_jobs() -> None:
    rows = [{**ROWS[0], "job_id": str(index), "gpus": 8, "arrival_s": index} for index in range(3)]
    ends = simulate(rows, None, homogeneous(1), policy=backwards, round_s=1000.0).jobs.set_index("job_id")["finish_s"]
    assert ends["2"] < ends["1"]


def test_the_command_line_takes_an_own_policy_in_all_processes(tmp_path: Path) -> None:
    (tmp_path / "own_one.py").write_text((EXAMPLES / "shortest_widest.py").read_text())
    files = ["--trace", FILES[0], "--profiles", FILES[1], "--cluster", FILES[2], "--jobs", "0:30", "--json"]
    command = [str(Path(sys.executable).with_name("kube-synergy")), "compare", *files]
    ran = subprocess.run(
        [*command, "--policies", "fifo,own_one:rank", "--mechanisms", "tune", "--processes", "2"],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [run["policy"] for run in json.loads(ran.stdout)["runs"]] == ["fifo", "own_one:rank"]


def test_an_entry_point_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "own-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[kube_synergy.policies]\nown-fifo = synergy_core.policies.fifo:rank\nown-gone = no_such_module:rank\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert known_policy("own-fifo") == "own-fifo"
    assert "own-fifo" in POLICIES
    with pytest.raises(PolicyError, match="'own-gone' is an entry point that cannot be loaded: No module named"):
        known_policy("own-gone")


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ("whim", "'whim' is not there; choose one of 2d-gittins, "),
        ("no_such_module:rank", "'no_such_module:rank' cannot be imported: No module named 'no_such_module'"),
        ("json:rank", "'json:rank': json has no function 'rank'"),
        (":rank", "':rank': the module has no function 'rank'"),
        ("json:__name__", "'json:__name__' is no function; give one that takes a Queue and returns a Ranking"),
    ],
)
def test_a_policy_that_is_not_there_is_one_line(policy: str, problem: str) -> None:
    files = ["--trace", FILES[0], "--profiles", FILES[1], "--cluster", FILES[2]]
    for command, option in (("simulate", "--policy"), ("compare", "--policies")):
        ran = CliRunner().invoke(main, [command, *files, option, policy])
        assert ran.exit_code == 2
        assert ran.stderr.startswith(f"error: {option}: {problem}")
        assert ran.stderr.count("\n") == 1
    with pytest.raises(FieldError, match="policy: "):
        simulate(*FILES, policy=policy)


def test_what_an_own_policy_returns_is_checked() -> None:
    def a_list(queue: Queue) -> Ranking:
        return [job.name for job in queue.jobs]  # type: ignore[return-value]

    def twice(queue: Queue) -> Ranking:
        return Ranking(tuple(job.name for job in queue.jobs for _ in range(2)))

    with pytest.raises(PolicyError, match="returned list; return a Ranking, for example ranked"):
        simulate(ROWS, None, homogeneous(1), policy=a_list)
    with pytest.raises(PolicyError, match="names job 'a' 2 times; name each job of the queue once"):
        simulate(ROWS, None, homogeneous(1), policy=twice)
    with pytest.raises(ValueError, match="fifo is a policy of kube-synergy; choose another name"):
        register("fifo", fifo.rank)


def test_bad_input_names_its_field() -> None:
    with pytest.raises(InputError, match="trace, line 2, gpus: must be at least 1, is 0"):
        load([{**ROWS[0], "gpus": 0}], None, homogeneous(1))
    with pytest.raises(SettingError, match=r"cluster: is missing; give a file, or an object"):
        load(ROWS)
    with pytest.raises(SettingError, match="jobs: 0:3 goes past the 2 jobs of the trace"):
        load(ROWS, None, homogeneous(1), jobs=(0, 3))
    with pytest.raises(SettingError, match="cluster: are in the workload already"):
        simulate(load(ROWS, None, homogeneous(1)), None, homogeneous(1))
    with pytest.raises(ValueError, match="rounds: is not a setting of a simulation"):
        simulate(ROWS, None, homogeneous(1), rounds=3)


def test_without_pandas_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"data frames need pandas: install kube-synergy\[notebook\]"):
        _ = simulate(ROWS, None, homogeneous(1)).jobs


def test_the_notebook_runs() -> None:
    """In a process of its own: Jupyter's programs warn of their own imports."""
    script = (
        "import nbformat, sys\nfrom nbclient import NotebookClient\n"
        "book = nbformat.read('own_policy.ipynb', 4)\nNotebookClient(book, timeout=120).execute()\n"
        "texts = [out['data'] for cell in book.cells for out in cell.get('outputs', []) if 'data' in out]\n"
        "assert any('<iframe' in text.get('text/html', '') for text in texts), 'no figure'\n"
        "print(sum('text/html' in text for text in texts))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=EXAMPLES, capture_output=True, text=True, check=False, timeout=250
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) >= 5
