"""A run that was preempted, moved, resized and killed has the losses and the weights of one that was left alone."""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support.job.example import EXAMPLES, Example
from support.job.lease_server import LeaseServer, go_on, leave_in
from support.job.process import free_port

pytestmark = pytest.mark.timeout(900)

SCRIPT = "torch_training.py"
OPTIONS = ("--log-every", "1", "--save-every", "10", "--step-ms", "4", "--steps", "240")
STEPS = 240


def losses(output: str) -> dict[int, str]:
    """The loss of each step that a process logged, to nine digits, which tell apart any two of 32 bits."""
    return {int(step): loss for step, loss in re.findall(r"step (\d+) loss (\S+)", output)}


def weights(output: str) -> str:
    found = re.search(rf"done after step {STEPS}, weights (\w{{16}})", output)
    assert found, output
    return found[1]


def leaves_after(server: LeaseServer, step: int) -> None:
    """From now on the job is preempted once it has reported `step`."""
    server.answer = lambda report: leave_in(0.0) if report["step"] >= step else go_on(0.02)


def read_until(process: subprocess.Popen[str], step: int) -> str:
    """The output until the loss of `step` is logged."""
    assert process.stdout is not None
    read = ""
    for line in process.stdout:
        read += line
        if f"step {step} " in line:
            return read
    raise AssertionError(f"it ended before step {step}: {read}")


def test_five_preemptions_a_move_a_resize_and_a_kill_change_nothing(
    example: Example, lease_server: LeaseServer, tmp_path: Path
) -> None:
    code, alone = example.run(SCRIPT, *OPTIONS, "--workers", "1")
    assert code == 0, alone
    assert sorted(losses(alone)) == list(range(1, STEPS + 1))
    assert len(set(losses(alone).values())) == STEPS, "losses that repeat could hide a step"
    shutil.rmtree(tmp_path / "checkpoints")
    seen: list[dict[int, str]] = []

    def run(*options: str, code: int) -> str:
        ended, output = example.run(SCRIPT, *OPTIONS, *options, SYNERGY_RUN=str(len(seen) + 1))
        assert ended == code, output
        seen.append(losses(output))
        return output

    for workers in (0, 2, 0, 1, 2):  # a resized job has another number of them
        step = (max(seen[-1]) if seen else 0) + 3
        leaves_after(lease_server, step)
        run("--workers", str(workers), code=75)
        left = json.loads((tmp_path / "termination-0").read_text())
        assert left["outcome"] == "yielded"
        assert left["checkpoint_step"] == left["step"] == max(seen[-1]) >= step
    shutil.move(tmp_path / "checkpoints", tmp_path / "moved")
    moved = ("--checkpoint", str(tmp_path / "moved"))
    lease_server.answer = lambda report: go_on()
    killed = example.start(SCRIPT, *OPTIONS, *moved, SYNERGY_RUN=str(len(seen) + 1))
    last_saved = (max(seen[-1]) + 15) // 10 * 10
    read = read_until(killed, last_saved + 5)
    killed.send_signal(signal.SIGKILL)
    assert example.end(killed)[0] == -signal.SIGKILL
    seen.append(losses(read))
    output = run(*moved, "--workers", "2", code=0)

    assert f"resumes at step {last_saved} of {STEPS}" in output
    firsts = [min(one) for one in seen]
    assert firsts == [1, *(max(one) + 1 for one in seen[:5]), last_saved + 1], "only what the kill lost is made again"
    for one in seen:
        assert one.items() <= losses(alone).items()
    assert set().union(*seen) == set(range(1, STEPS + 1))
    assert weights(output) == weights(alone)


def gang(example: Example, run: int, *options: str) -> list[subprocess.Popen[str]]:
    """Both processes of a run of two."""
    ports = {"MASTER_PORT": str(free_port()), "SYNERGY_PEER_PORT": str(free_port())}
    environ = {**ports, "WORLD_SIZE": "2", "SYNERGY_RUN": str(run)}
    return [example.start(SCRIPT, *OPTIONS, *options, RANK=str(rank), **environ) for rank in (0, 1)]


def test_two_processes_that_average_by_gloo_are_preempted_and_one_is_killed(
    example: Example, lease_server: LeaseServer, tmp_path: Path
) -> None:
    alone = [example.end(process)[1] for process in gang(example, 1)]
    assert weights(alone[0]) == weights(alone[1])
    assert losses(alone[0]) != losses(alone[1]), "each has its own part of the data"
    shutil.rmtree(tmp_path / "checkpoints")

    leaves_after(lease_server, 25)
    first = [example.end(process) for process in gang(example, 1, "--workers", "1")]
    assert [code for code, _ in first] == [75, 75], first
    lease_server.answer = lambda report: go_on()
    second = gang(example, 2)
    read = read_until(second[1], 67)
    second[1].send_signal(signal.SIGKILL)
    assert example.end(second[1])[0] == -signal.SIGKILL
    lost, output = example.end(second[0])
    assert lost != 0, "the other one learns that its peer is gone"
    last = [example.end(process) for process in gang(example, 3)]
    assert [code for code, _ in last] == [0, 0], last

    assert f"resumes at step 60 of {STEPS}" in last[0][1]
    for rank, told in ((0, [first[0][1], output, last[0][1]]), (1, [first[1][1], read, last[1][1]])):
        for one in told:
            assert losses(one)
            assert losses(one).items() <= losses(alone[rank]).items()
    assert weights(last[0][1]) == weights(last[1][1]) == weights(alone[0])


def test_torchrun_starts_the_processes_and_they_leave_together(
    example: Example, lease_server: LeaseServer, tmp_path: Path
) -> None:
    torchrun = Path("/usr/bin/torchrun")
    logs = tmp_path / "logs"
    # PyTorch 1.13 knows no option with dashes. On Python 3.11 it takes neither "no stream" nor "both" for these two.
    streams = ["--tee", "1", "--redirects", "2", "--log_dir", str(logs)]

    def run(number: int) -> tuple[int, str]:
        shutil.rmtree(logs, ignore_errors=True)
        options = ["--max_restarts", "0", "--nproc_per_node", "2", "--master_port", str(free_port()), *streams]
        script = [str(EXAMPLES / SCRIPT), *OPTIONS, "--checkpoint", str(tmp_path / "checkpoints")]
        environ = {"SYNERGY_RUN": str(number), "SYNERGY_PEER_PORT": str(free_port())}
        environ["SYNERGY_TERMINATION_LOG"] = str(tmp_path / "termination-0")
        done = subprocess.run(
            [torchrun, *options, *script],
            env={**os.environ, **example.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + "".join(file.read_text() for file in sorted(logs.rglob("stderr.log")))

    leaves_after(lease_server, 40)
    code, output = run(1)
    assert code == 1, output  # what torchrun makes of every other exit code too
    assert (tmp_path / "termination-0").exists(), output
    left = json.loads((tmp_path / "termination-0").read_text())
    assert left["outcome"] == "yielded", output
    lease_server.answer = lambda report: go_on()
    code, output = run(2)
    assert code == 0, output
    assert output.count(f"resumes at step {left['step']} of {STEPS}") == 2
    assert len(set(re.findall(r"weights (\w{16})", output))) == 1
