"""Simulations on a real Dask scheduler and its workers, on loopback."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import distributed
import pytest
from click.testing import CliRunner, Result

from support.simulator.steps import Step, end, square, square_once_let, without_times
from synergy_cli.main import main
from synergy_cli.simulation.kept import Kept
from synergy_simulator.engine.options import Options
from synergy_simulator.forecast.calibration import calibrate
from synergy_simulator.grid import Case, run_all
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.runners.dask_cluster import connected
from synergy_simulator.runners.errors import LostError, PlaceError
from synergy_simulator.runners.processes import Processes
from synergy_simulator.runners.runner import nothing
from synergy_simulator.workloads.generator import Split, generate
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import build_workload

TESTS = Path(__file__).parents[2]
SIMULATION = TESTS.parent / "examples/simulation"
SOON_S = 120.0


class Dask:
    """A scheduler and workers, which end with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "scheduler.json"
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        """Of the scheduler."""
        return str(json.loads(self._file.read_text())["address"])

    def scheduler(self, *, failures: int = 3) -> subprocess.Popen[bytes]:
        """One that gives an item up after so many workers ended with it, and one more."""
        arguments = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self._file))
        process = self._start(
            *arguments,
            "--dashboard-address",
            "127.0.0.1:0",
            DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=str(failures),
        )
        until(self._file.exists)
        until(lambda: self._file.read_text().rstrip().endswith("}"))
        return process

    def worker(self, *, first: Path | None = None) -> subprocess.Popen[bytes]:
        """A worker whose packages are first looked for in a folder."""
        paths = [*([] if first is None else [str(first)]), str(TESTS)]
        arguments = ("worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard")
        return self._start(*arguments, "--local-directory", str(self.folder), PYTHONPATH=os.pathsep.join(paths))

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """End the only worker, and wait until the scheduler knows."""
        worker.kill()
        worker.wait()
        with distributed.Client(self.address) as client:
            until(lambda: not client.nthreads())

    def _start(self, *arguments: str, **environ: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{arguments[0]}-{len(self._started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments], env={**os.environ, **environ}, stdout=log, stderr=log
            )
        self._started.append(process)
        return process

    def end(self) -> None:
        """Of all that was started here."""
        for process in reversed(self._started):
            process.kill()
            process.wait()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def dask_in(folder: Path) -> Iterator[Dask]:
    made = Dask(folder)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Dask]:
    (tmp_path / "dask").mkdir()
    with dask_in(tmp_path / "dask") as made:
        yield made


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    """A scheduler with two workers, for tests that leave it as it is."""
    with dask_in(tmp_path_factory.mktemp("pair")) as made:
        made.scheduler()
        made.worker()
        made.worker()
        yield made


def cases() -> list[Case]:
    profiles = built_in_profiles()
    trace = generate(
        30, seed=3, split=Split(20, 70, 10), models=profiles.models, jobs_per_hour=6.0, gpu_mix={1: 0.7, 4: 0.3}
    )
    workload = build_workload(trace, profiles, homogeneous(1))
    return [Case(name, workload, Options.of(policy=name, record=True)) for name in ("fifo", "srtf", "las")]


def steps(folder: Path, count: int) -> list[Step]:
    folder.mkdir(exist_ok=True)
    return [Step(number, str(folder), f"step {number}") for number in range(count)]


def test_results_are_those_of_one_process(pair: Dask) -> None:
    told: list[int] = []
    case = cases()[1]
    with connected(pair.address) as cluster:
        made = run_all(cases(), runner=cluster, progress=told.append)
        found = calibrate(case.workload, case.options, moments=3, draws=2, runner=cluster)
    assert told == [1, 2, 3]
    assert without_times(made) == without_times(run_all(cases(), runner=Processes(1)))
    assert found == calibrate(case.workload, case.options, moments=3, draws=2, runner=Processes(1))


def test_a_policy_of_ones_own_must_be_where_the_workers_are(
    pair: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(SIMULATION / "shortest_widest.py", tmp_path / "nowhere_else.py")
    monkeypatch.chdir(tmp_path)
    done = compare(pair.address, "--policies", "nowhere_else:rank")
    assert done.exit_code == 2
    assert "error: --policy: 'nowhere_else:rank' cannot be imported" in done.stderr


def compare(address: str, *more: str) -> Result:
    files = [f"--{name}={SIMULATION / file}" for name, file in INPUTS.items()]
    return CliRunner().invoke(main, ["compare", *files, "--jobs", "0:20", "--json", "--dask", address, *more])


INPUTS = {"trace": "trace.csv", "profiles": "profiles.json", "cluster": "cluster.yaml"}


def test_what_was_kept_is_not_simulated_again_wherever_it_was(pair: Dask, tmp_path: Path) -> None:
    kept = f"--keep={tmp_path / 'kept'}"
    first = compare(pair.address, "--policies", "fifo,las", "--mechanisms", "tune", kept)
    assert (first.exit_code, first.stderr) == (0, f"--keep: 0 of 2 simulations were in {tmp_path / 'kept'}\n")
    command = ["compare", *(f"--{name}={SIMULATION / file}" for name, file in INPUTS.items()), "--jobs", "0:20"]
    more = ["--json", "--policies", "fifo,las", "--mechanisms", "tune", "--processes", "1"]
    again = CliRunner().invoke(main, [*command, *more, kept])
    assert again.stderr == f"--keep: 2 of 2 simulations were in {tmp_path / 'kept'}\n"
    assert again.stdout == first.stdout
    assert figures(first) == figures(CliRunner().invoke(main, [*command, *more]))


def figures(done: Result) -> list[dict[str, object]]:
    """All but how long it took, which is measured."""
    runs, measured = json.loads(done.stdout)["runs"], {"plan_mean_ms", "plan_p99_ms", "wall_s"}
    return [{key: value for key, value in run.items() if key not in measured} for run in runs]


def test_an_interruption_cancels_what_is_left(pair: Dask, tmp_path: Path) -> None:
    asked = steps(tmp_path / "steps", 50)

    def interrupt() -> None:
        until(lambda: len(list((tmp_path / "steps").iterdir())) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    watch = threading.Thread(target=interrupt)
    try:
        with connected(pair.address) as cluster:
            watch.start()
            with pytest.raises(KeyboardInterrupt):
                cluster.run(square_once_let, asked, nothing)
    finally:
        watch.join()
        signal.signal(signal.SIGINT, old)
    (tmp_path / "steps" / "go").touch()
    with connected(pair.address) as cluster:  # after these two, workers have no other
        assert cluster.run(square, asked[:4], nothing) == [0, 1, 4, 9]
    begun = {file.name.partition(".")[0] for file in (tmp_path / "steps").iterdir()} - {"go"}
    assert len(begun) <= 2


def test_another_worker_takes_what_a_killed_one_had(dask: Dask, tmp_path: Path) -> None:
    dask.scheduler()
    workers = [dask.worker(), dask.worker()]
    begun = tmp_path / "begun"
    asked = steps(begun, 6)

    def kill() -> None:
        until(lambda: len({file.suffix for file in begun.iterdir()}) == 2)
        workers[0].kill()
        (begun / "go").touch()

    watch = threading.Thread(target=kill)
    with connected(dask.address) as cluster:
        until(lambda: len(cluster.workers) == 2)
        watch.start()
        assert cluster.run(square_once_let, asked, nothing) == [0, 1, 4, 9, 16, 25]
        watch.join()
        assert len(cluster.workers) == 1
    assert workers[0].returncode is None or workers[0].poll() == -signal.SIGKILL
    (killed,) = {file.suffix for file in begun.iterdir() if file.suffix == f".{workers[0].pid}"}
    assert killed, "the killed one had begun"


def test_an_item_with_which_workers_end_is_given_up_and_named(dask: Dask, tmp_path: Path) -> None:
    dask.scheduler(failures=1)
    workers = [dask.worker(), dask.worker()]
    said = r"2 workers ended while they had 'step 7', the last one tcp://127.0.0.1:\d+;"
    with connected(dask.address) as cluster:
        until(lambda: len(cluster.workers) == 2)
        with pytest.raises(LostError, match=said):
            cluster.run(end, [Step(7, str(tmp_path), "step 7")], nothing)
    assert [worker.wait(SOON_S) for worker in workers] == [7, 7]


def test_without_workers_it_ends_and_what_was_kept_goes_on(dask: Dask, tmp_path: Path) -> None:
    scheduler = dask.scheduler()
    with (
        pytest.raises(PlaceError, match=r"has no workers; start some with `dask worker tcp://127.0.0.1:\d+ "),
        connected(dask.address, patience_s=0.2),
    ):
        pass
    worker = dask.worker()
    with connected(dask.address) as cluster:
        kept = Kept(Kept.folder_of(str(tmp_path / "kept")), cluster)
        first = run_all(cases()[:1], runner=kept)
        worker.kill()
        impatient = cluster.patient(1.0)
        with pytest.raises(LostError, match="has had no worker for 1 s"):
            run_all(cases(), runner=Kept(kept.folder, impatient))
        scheduler.kill()
        with pytest.raises(LostError, match=r"the scheduler at tcp://127.0.0.1:\d+ ended, or the network to it"):
            run_all(cases(), runner=Kept(kept.folder, impatient))
    local = Kept(kept.folder, Processes(1))
    assert run_all(cases(), runner=local)[0] == first[0]
    assert (local.taken, local.cases) == (1, 3)


def test_a_worker_with_other_code_is_named(dask: Dask, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(TESTS.parent / "simulator/synergy_simulator", other / "synergy_simulator")
    with (other / "synergy_simulator/grid.py").open("a") as file:
        file.write("# another version\n")
    dask.scheduler()
    worker = dask.worker(first=other)
    sources = r"worker tcp://127.0.0.1:\d+ has kube-synergy's sources \w+ instead of \w+; install the same kube-synergy"
    with pytest.raises(PlaceError, match=sources), connected(dask.address):
        pass
    dask.kill(worker)
    (tmp_path / "none/synergy_simulator").mkdir(parents=True)
    (tmp_path / "none/synergy_simulator/__init__.py").touch()
    worker = dask.worker(first=tmp_path / "none")
    with pytest.raises(PlaceError, match=r"worker tcp://127.0.0.1:\d+ has no kube-synergy"), connected(dask.address):
        pass
    dask.kill(worker)
    dask.worker()
    with connected(dask.address) as cluster:
        dask.worker(first=other)  # it comes late
        until(lambda: len(cluster.workers) == 2)
        with pytest.raises(PlaceError, match="has other code: kube-synergy's sources"):
            cluster.run(square_once_let, steps(tmp_path / "steps", 2), nothing)


@pytest.mark.parametrize(
    ("address", "words"),
    [("tcp://127.0.0.1:1", "no Dask scheduler answers"), ("nowhere://x", "no Dask scheduler answers")],
)
def test_an_address_without_a_scheduler_is_one_line(address: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synergy_simulator.runners.dask_cluster.CONNECT_S", 1.0)
    done = compare(address)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: --dask: {address}: {words} (")
    assert "give its address, such as tcp://HOST:8786, start it with `dask scheduler`" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_missing_and_what_does_not_go_together_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = compare("tcp://127.0.0.1:1")
    assert (done.exit_code, done.stderr) == (
        2,
        "error: --dask: needs distributed: install kube-synergy[dask]\n",
    )
    done = compare("tcp://127.0.0.1:1", "--processes", "2")
    assert done.stderr == "error: --processes: is for this machine; leave it out with --dask\n"
