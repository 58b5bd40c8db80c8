"""The harness around real commands: what it measures, and each way in which there is nothing to measure."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from support.job.harness import MEMORY, Harness, at_most, cgroups
from support.job.process import wait_until
from synergy_profiler.measurement import Sample
from synergy_profiler.steps import StepReceiver

QUICK = ("--warmup-steps", "2", "--steps", "20", "--min-seconds", "0", "--grace", "2")
STEADY = """
    import sys, time, synergy_job
    moment = time.monotonic()
    for _ in synergy_job.iterate([1, 2, 3]):
        moment += 0.02
        time.sleep(max(0, moment - time.monotonic()))
"""
"""Fifty steps a second."""


def test_steady_steps_are_measured_and_the_command_is_stopped(harness: Harness) -> None:
    run = harness.run(STEADY, *QUICK)
    assert run.code == 0
    assert run.result["outcome"] == "measured"
    assert run.result["steps_per_second"] == at_most(50)
    assert (run.result["steps"], run.result["warmup_steps"]) == (20, 2)
    assert run.result["seconds"] == pytest.approx(20 / run.result["steps_per_second"], rel=0.2)


def test_the_peak_of_memory_is_the_containers(harness: Harness) -> None:
    with cgroups(harness, MEMORY):
        run = harness.run(STEADY, *QUICK)
    # a process starts with the peak of the one it was forked from, here this test's
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert 5_000_000 < run.result["max_rss_bytes"] < own_peak + 100_000_000


def test_beside_another_command_it_trains_for_the_given_time_and_tells_when_its_steps_ended(harness: Harness) -> None:
    begun = time.time()
    run = harness.run(STEADY, "--warmup-steps", "2", "--pair-seconds", "3", "--max-relative-error", "0", "--grace", "2")
    assert run.code == 0, "however uneven its steps: the other one comes and goes"
    marks = run.result["together"]["marks"]
    assert begun < marks[0][0] < marks[-1][0] < time.time()
    assert marks[-1][0] - marks[0][0] >= 3
    assert (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0]) == at_most(50)


def test_beside_another_command_one_that_ends_early_tells_what_it_did(harness: Harness) -> None:
    short = (
        STEADY
        + """
        if moment > 0 and time.monotonic() - begun > 1:
            break
    """
    )
    run = harness.run(short.replace("moment =", "begun = moment =", 1), "--pair-seconds", "600", "--grace", "2")
    assert run.code == 0
    assert run.result["together"]["marks"][-1][1] >= 10


def test_warm_up_steps_do_not_count(harness: Harness) -> None:
    slow_start = """
        import time, synergy_job
        for step, _ in enumerate(synergy_job.iterate([1])):
            time.sleep(0.2 if step < 3 else 0.01)
    """
    run = harness.run(slow_start, "--warmup-steps", "3", "--steps", "20", "--min-seconds", "0")
    assert run.result["steps_per_second"] > 40, "with them it would be 29"


def test_without_warm_up_the_first_step_counts(harness: Harness) -> None:
    script = """
        import time, synergy_job
        for _ in synergy_job.iterate([1]):
            time.sleep(0.1)
    """
    run = harness.run(script, "--warmup-steps", "0", "--steps", "4", "--min-seconds", "0")
    assert run.result["steps"] == 4
    assert run.result["steps_per_second"] == at_most(10)


def test_fast_steps_are_measured_for_a_while(harness: Harness) -> None:
    script = """
        import time, synergy_job
        for _ in synergy_job.iterate([1]):
            time.sleep(0.001)
    """
    run = harness.run(script, "--steps", "5", "--min-seconds", "0.5")
    assert run.result["seconds"] >= 0.5
    assert run.result["steps"] > 50


def test_a_profile_run_neither_loads_nor_saves_nor_ends(harness: Harness) -> None:
    script = """
        import time, synergy_job
        def never(*args):
            raise SystemExit(9)
        for _ in synergy_job.iterate([1, 2], save=never, load=never, steps=3, checkpoint_every_steps=1):
            time.sleep(0.005)
    """
    cluster = {"SYNERGY_JOB": "j", "SYNERGY_NAMESPACE": "n", "SYNERGY_RUN": "1", "SYNERGY_STEPS": "3"}
    assert harness.run(script, *QUICK, **cluster).result["outcome"] == "measured"


def test_the_sizes_of_the_models_tensors_come_with_the_result(harness: Harness) -> None:
    script = """
        import time, synergy_job
        for _ in synergy_job.iterate([1], model=[300, 100]):
            time.sleep(0.005)
    """
    result = harness.run(script, *QUICK).result
    assert (result["largest_tensor_bytes"], result["model_bytes"]) == (300, 400)


def test_a_second_rank_in_the_pod_does_not_speak(harness: Harness) -> None:
    """As torchrun starts them: rank 1 is five times as fast, and the measurement is rank 0's."""
    script = """
        import os, sys, time, synergy_job
        if len(sys.argv) == 1:
            rank = "0"
            other = os.spawnve(os.P_NOWAIT, sys.executable, [sys.executable, sys.argv[0], "1"],
                               {**os.environ, "RANK": "1"})
            pause = 0.02
        else:
            pause = 0.004
        for _ in synergy_job.iterate([1]):
            time.sleep(pause)
    """
    run = harness.run(script, *QUICK)
    assert run.result["steps_per_second"] < 52


def test_the_commands_output_goes_on(harness: Harness) -> None:
    script = """
        import sys, time, synergy_job
        for step, _ in enumerate(synergy_job.iterate([1])):
            for file, name in ((sys.stdout, "out"), (sys.stderr, "err")):
                file.write(f"{name} {step}\\n")
                file.flush()
            time.sleep(0.005)
    """
    run = harness.run(script, *QUICK)
    assert "out 5\n" in run.output
    assert "err 5\n" in run.output


def test_a_crash(harness: Harness) -> None:
    run = harness.run(
        """
        import time, synergy_job
        for step, _ in enumerate(synergy_job.iterate([1])):
            time.sleep(0.005)
            if step == 10:
                raise RuntimeError("out of GPU memory")
        """,
        *QUICK,
    )
    assert run.code == 1
    assert run.result["reason"] == "Crashed"
    assert run.result["exit_code"] == 1
    assert run.result["message"] == "the command ended with exit code 1 before step 22 (last seen: step 10)"
    assert "RuntimeError: out of GPU memory" in run.result["log_tail"]


def test_a_crash_before_the_first_step(harness: Harness) -> None:
    run = harness.run("import nowhere_to_be_found", *QUICK)
    assert run.result["reason"] == "Crashed"
    assert "ModuleNotFoundError" in run.result["log_tail"]


def test_a_command_that_is_killed(harness: Harness) -> None:
    run = harness.run("import os; os.kill(os.getpid(), 9)", *QUICK)
    assert (run.result["reason"], run.result["exit_code"]) == ("Crashed", 137)


def test_a_long_log_is_cut_to_its_end(harness: Harness) -> None:
    run = harness.run("print('x' * 100_000 + 'the end'); raise SystemExit(3)", *QUICK)
    assert run.result["log_tail"].endswith("xxx" + "the end\n")
    assert (harness.folder / "termination-log").stat().st_size <= 4096


def test_a_command_that_makes_no_steps(harness: Harness) -> None:
    run = harness.run("print('hello')", *QUICK)
    assert run.code == 1
    assert run.result["reason"] == "NoSteps"
    assert "must take its batches from synergy_job.iterate" in run.result["message"]


def test_a_command_that_stops_too_early(harness: Harness) -> None:
    run = harness.run(
        """
        import synergy_job
        for step, _ in enumerate(synergy_job.iterate([1])):
            if step == 5:
                break
        """,
        *QUICK,
    )
    assert run.result["reason"] == "NoSteps"
    assert "ended by itself before step 22 (last seen: step 5)" in run.result["message"]


def test_a_command_that_hangs(harness: Harness) -> None:
    run = harness.run("import time; time.sleep(600)", *QUICK, "--timeout", "0.5")
    assert run.code == 1
    assert run.result["reason"] == "Timeout"
    assert "made no training step within 0.5 s" in run.result["message"]


def test_a_command_that_is_too_slow(harness: Harness) -> None:
    run = harness.run(STEADY, "--steps", "1000", "--timeout", "1.5")
    assert run.result["reason"] == "Timeout"
    assert "step 1005 was not reached within 1.5 s (last seen: step " in run.result["message"]
    assert "raise profile.timeoutSeconds or lower profile.steps" in run.result["message"]


@pytest.mark.parametrize(
    ("command", "says"),
    [(["no-such-program"], "No such file"), (["/etc/passwd"], "Permission denied")],
)
def test_a_command_that_cannot_be_run(harness: Harness, command: list[str], says: str) -> None:
    run = harness.run_command(command, *QUICK)
    assert run.code == 1
    assert run.result["reason"] == "BadCommand"
    assert says in run.result["message"]


def test_no_command(harness: Harness) -> None:
    run = harness.run_command([], *QUICK)
    assert (run.code, run.result["reason"]) == (1, "BadCommand")
    assert "write it after --" in run.result["message"]


def test_steps_that_are_too_uneven(harness: Harness) -> None:
    run = harness.run(
        """
        import time, synergy_job
        for step, _ in enumerate(synergy_job.iterate([1])):
            time.sleep(0.3 if step in (5, 6) else 0.001)
        """,
        *QUICK,
        *("--max-relative-error", "0.25"),
    )
    assert run.code == 1
    assert run.result["reason"] == "TooNoisy"
    assert "more than 25%: measure more steps (profile.steps)" in run.result["message"]


def test_messages_that_make_no_sense(harness: Harness) -> None:
    garbage = """
        import os, socket, sys, time
        address = "\\0" + os.environ["SYNERGY_PROFILE_SOCKET"][1:]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as harness:
            for message in (b"", b"step 5", b"[]", b'{"step": true, "at": 1.0}', b'{"step": -1, "at": 1.0}',
                            b'{"step": 1}', b'{"step": 1, "at": 1e18}', b'{"step": 1, "at": "now"}', b"\\xff" * 5000):
                harness.sendto(message, address)
    """
    run = harness.run(garbage, *QUICK)
    assert run.result["reason"] == "NoSteps"
    assert "(9 step messages made no sense)" in run.result["message"]


@pytest.mark.parametrize(
    "sizes",
    [
        {"model_bytes": 5},
        {"largest_tensor_bytes": 6, "model_bytes": 5},
        {"largest_tensor_bytes": 1, "model_bytes": 5.5},
        {"largest_tensor_bytes": 0, "model_bytes": 0},
        {"largest_tensor_bytes": True, "model_bytes": 5},
        {"largest_tensor_bytes": 1, "model_bytes": (1 << 50) + 1},
    ],
)
def test_a_step_with_wrong_sizes_counts_without_them(sizes: dict[str, object]) -> None:
    with closing(StepReceiver()) as receiver, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as job:
        for said in (sizes, {"largest_tensor_bytes": 3, "model_bytes": 1 << 50}):
            job.sendto(json.dumps({"step": 1, "at": 1.0, **said}).encode(), "\0" + receiver.address[1:])
        samples = [receiver.next(5.0) for _ in range(2)]
        assert samples == [Sample(1, 1.0), Sample(1, 1.0, tensors=(3, 1 << 50))]
        assert receiver.unreadable == 0


def test_messages_that_make_no_sense_do_not_spoil_a_measurement(harness: Harness) -> None:
    run = harness.run(
        """
        import os, socket, time, synergy_job
        address = "\\0" + os.environ["SYNERGY_PROFILE_SOCKET"][1:]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            for step, _ in enumerate(synergy_job.iterate([1])):
                time.sleep(0.02)
                for message in (b"nonsense", b'{"step": 3, "at": 5.0}', b'{"step": 999999, "at": 1e9}'):
                    other.sendto(message, address)
        """,
        *QUICK,
    )
    assert run.result["steps_per_second"] == at_most(50)
    assert run.result["steps"] == 20


def test_a_command_that_ignores_sigterm_is_killed(harness: Harness) -> None:
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + STEADY.replace("\n    ", "\n")
    begun = time.monotonic()
    run = harness.run(stubborn, *QUICK)
    assert run.result["outcome"] == "measured"
    assert time.monotonic() - begun > 2


def test_nothing_of_the_command_is_left_running(harness: Harness) -> None:
    """Not even a loader's process that ignores SIGTERM and holds the output open."""
    script = """
        import os, signal, sys, time, synergy_job
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open(os.environ["PID_FILE"], "w").write(str(os.getpid()))
            time.sleep(600)
        for _ in synergy_job.iterate([1]):
            time.sleep(0.01)
    """
    pid_file = harness.folder / "pid"
    harness.run(script, *QUICK, PID_FILE=str(pid_file))  # however uneven its steps are on a busy machine
    pid = int(pid_file.read_text())
    wait_until(lambda: is_gone(pid), "the end of the helper")


def test_sigterm_stops_the_command_and_leaves_no_result(harness: Harness) -> None:
    pid_file = harness.folder / "pid"
    script = harness.script(
        f"open({str(pid_file)!r}, 'w').write(str(__import__('os').getpid()))\n" + "import time\ntime.sleep(600)"
    )
    process = subprocess.Popen(harness.command(*QUICK, of=[sys.executable, str(script)]))
    wait_until(lambda: pid_file.exists() and pid_file.read_text() != "", "the start of the command")
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 128 + signal.SIGTERM
    wait_until(lambda: is_gone(int(pid_file.read_text())), "the end of the command")
    assert not (harness.folder / "termination-log").exists()


def test_the_command_ends_when_the_harness_is_killed(harness: Harness) -> None:
    pid_file = harness.folder / "pid"
    script = harness.script(
        f"""
        import os, time, synergy_job
        for step, _ in enumerate(synergy_job.iterate([1])):
            time.sleep(0.01)
            if step == 3:
                open({str(pid_file)!r}, "w").write(str(os.getpid()))
        """
    )
    process = subprocess.Popen(harness.command(of=[sys.executable, str(script)]))
    wait_until(lambda: pid_file.exists() and pid_file.read_text() != "", "some steps")
    process.kill()
    process.wait()
    wait_until(lambda: is_gone(int(pid_file.read_text())), "the end of the command")


def test_a_termination_log_that_cannot_be_written_is_told(harness: Harness) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "synergy_profiler", "--", sys.executable, str(harness.script("pass"))],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "SYNERGY_TERMINATION_LOG": "/nowhere/log"},
    )
    assert done.returncode == 1
    assert "cannot write the termination message: " in done.stderr
    assert json.loads(done.stderr.splitlines()[-1].partition(": ")[2])["reason"] == "NoSteps"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--steps", "1"), ("--warmup-steps", "-1"), ("--timeout", "inf"), ("--steps", "many"), ("--grace", "nan")],
)
def test_a_wrong_option_is_named(tmp_path: Path, option: str, value: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "synergy_profiler", option, value, "--", "true"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"argument {option}" in done.stderr


def is_gone(pid: int) -> bool:
    """Whether the process has ended, though nobody may have asked for its exit code yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"
