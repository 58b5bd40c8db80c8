"""The example scripts learn, resume bit for bit where they left, and agree among themselves."""

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.job.example import EXAMPLES, Example
from support.job.process import wait_until

FAST = ("--device-ms", "1", "--cpu-ms-per-step", "1", "--log-every", "10")
STEADY = ("--device-ms", "20", "--cpu-ms-per-step", "5", "--log-every", "1")
SCRIPTS = ["cpu_hungry.py", "gpu_bound.py", "two_node.py"]


def losses(output: str) -> list[float]:
    return [float(value) for value in re.findall(r"step \d+ loss ([\d.]+)", output)]


def weights(output: str) -> str:
    found = re.search(r"done after step 120, weights (\w{16})", output)
    assert found, output
    return found[1]


def leave_after(example: Example, script: str, step: int) -> int:
    """Train until `step` is logged, ask the job to leave; the step at which it did."""
    process: subprocess.Popen[str] = example.start(script, *STEADY)
    assert process.stdout is not None
    assert any(f"step {step} " in line for line in process.stdout), "it ended before that step"
    process.send_signal(signal.SIGTERM)
    assert example.end(process)[0] == 75
    left = json.loads((example.folder / "termination-0").read_text())
    assert left["outcome"] == "yielded"
    assert left["step"] == left["checkpoint_step"] >= step
    return int(left["step"])


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_loss_falls(example: Example, script: str) -> None:
    code, output = example.run(script, *FAST)
    assert code == 0, output
    found = losses(output)
    assert len(found) == 12
    assert sum(found[-3:]) < sum(found[:3]) / 3


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_run_that_was_interrupted_ends_with_the_same_weights(example: Example, script: str, tmp_path: Path) -> None:
    _, whole = example.run(script, *FAST)
    shutil.rmtree(tmp_path / "checkpoints")
    step = leave_after(example, script, 17)
    code, output = example.run(script, *FAST, SYNERGY_RUN="2")
    assert code == 0
    assert f"resumes at step {step} of 120" in output
    assert weights(output) == weights(whole)
    assert losses(output)[-3:] == losses(whole)[-3:]


def test_outside_a_cluster_a_script_needs_nothing(example: Example) -> None:
    example.environ.clear()
    code, output = example.run("gpu_bound.py", *FAST, "--steps", "25", SYNERGY_JOB="")
    assert code == 0
    assert "done after step 25" in output
    assert not (example.folder / "checkpoints").exists()


def test_two_workers_agree_leave_together_and_resume_from_rank_0(example: Example) -> None:
    def start(run: str) -> list[subprocess.Popen[str]]:
        return [
            example.start("two_node.py", *STEADY, RANK=str(rank), WORLD_SIZE="2", SYNERGY_RUN=run, PYTHONUNBUFFERED="1")
            for rank in (0, 1)
        ]

    processes = start("1")
    assert processes[1].stdout is not None
    assert processes[1].stdout.readline() == f"rank 1 of 2, rank 0 is localhost:{example.environ['MASTER_PORT']}\n"
    while "step 20 " not in processes[1].stdout.readline():
        pass
    processes[0].send_signal(signal.SIGTERM)
    assert [example.end(process)[0] for process in processes] == [75, 75]
    left = [json.loads((example.folder / f"termination-{rank}").read_text())["step"] for rank in (0, 1)]
    assert left[0] == left[1] >= 20

    outputs = [example.end(process) for process in start("2")]
    assert [code for code, _ in outputs] == [0, 0]
    assert weights(outputs[0][1]) == weights(outputs[1][1])
    assert f"resumes at step {left[0]} of 120" in outputs[1][1]


def test_a_worker_whose_weights_differ_is_found_out(example: Example) -> None:
    spoiled = example.folder / "spoiled.py"
    spoiled.write_text(
        "import runpy, sys\n"
        f"sys.path.insert(0, {str(EXAMPLES)!r})\n"
        "import small_network\n"
        "honest = small_network.Network.step\n"
        "small_network.Network.step = lambda self, gradient: honest(self, gradient, 0.03)\n"
        "runpy.run_module('two_node', run_name='__main__')\n"
    )
    environ = {"WORLD_SIZE": "2"}
    honest = example.start("two_node.py", *FAST, RANK="0", **environ)
    other = example.start(str(spoiled), *FAST, RANK="1", **environ)
    code, output = example.end(honest)
    assert code == 1
    assert "DisagreementError: a worker's weights are not those of rank 0" in output
    assert example.end(other)[0] == 1


def test_the_loaders_end_with_their_training_process(example: Example) -> None:
    process = example.start("cpu_hungry.py", *STEADY)
    assert process.stdout is not None
    process.stdout.readline()
    loaders = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    assert len(loaders) == 2
    process.kill()
    wait_until(lambda: not any(is_alive(pid) for pid in loaders), "the end of the loaders")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_small_and_soon_there(example: Example, script: str) -> None:
    begun = time.monotonic()
    process = example.start(script, *STEADY)
    assert process.stdout is not None
    process.stdout.readline()
    seconds = time.monotonic() - begun
    pids = [process.pid, *map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())]
    memory = sum(proportional_bytes(pid) for pid in pids)
    cpu = cpu_seconds(process.pid)
    assert memory < 100e6
    assert cpu < 1.0
    assert seconds < 5  # on an idle machine less than one


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def proportional_bytes(pid: int) -> int:
    """Memory of a process, what it shares with others divided among them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return 1024 * int(line.split()[1])
    raise AssertionError(f"no Pss of process {pid}")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
