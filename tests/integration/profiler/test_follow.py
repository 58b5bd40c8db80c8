"""A script without the library, followed while it trains: reports, the last step, signals and exit codes."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.job.lease_server import LeaseServer, leave_in, make_authority, serve_leases
from support.job.process import wait_until

REGEX = "--throughput-regex=^step (?P<step>\\d+)"


class Followed:
    """`python3 -m synergy_profiler.follow` around scripts, as rank 0 of a job of 40 steps."""

    def __init__(self, folder: Path, server: LeaseServer) -> None:
        self.folder = folder
        (folder / "token").write_text("token")
        self.environ = {
            **os.environ,
            "SYNERGY_JOB": "plain",
            "SYNERGY_NAMESPACE": "team",
            "SYNERGY_RUN": "2",
            "SYNERGY_STEPS": "40",
            "SYNERGY_EXTENDER_URL": server.url,
            "SYNERGY_TOKEN_FILE": str(folder / "token"),
            "SYNERGY_CA_CERT": server.ca_cert,
            "NVIDIA_VISIBLE_DEVICES": "GPU-1",
            "SYNERGY_TERMINATION_LOG": str(folder / "termination"),
        }

    def start(self, script: str, *options: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "synergy_profiler.follow", *(options or (REGEX,)), "--"]
        command = [sys.executable, "-c", textwrap.dedent(script)]
        return subprocess.Popen(
            [*words, *command], env=self.environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "termination").read_text())
        return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LeaseServer]:
    with serve_leases(make_authority(tmp_path)) as made:
        yield made


@pytest.fixture
def followed(tmp_path: Path, server: LeaseServer) -> Followed:
    return Followed(tmp_path, server)


ENDLESS = """
    import itertools, time
    for step in itertools.count(7):
        print("step", step)
        time.sleep(0.02)
"""


def test_a_script_that_ends_well_has_done_all_its_steps(followed: Followed, server: LeaseServer) -> None:
    process = followed.start("print('step 38'); print('saved')")
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (0, "step 38\nsaved\n", "")
    assert followed.message() == {"outcome": "finished", "step": 40, "checkpoint_step": 0}
    assert server.reports[-1]["done"] is True
    assert server.reports[-1]["step"] == 40


def test_steps_and_speed_are_reported_and_a_lease_that_ends_stops_nothing(
    followed: Followed, server: LeaseServer
) -> None:
    process = followed.start(ENDLESS)
    wait_until(lambda: bool(server.reports) and server.reports[-1]["step"] > 9, "a report of step 10")
    assert 0 < server.reports[-1]["steps_per_second"] <= 55
    assert server.reports[-1]["gpu_uuids"] == ["GPU-1"]
    server.answer = lambda report: leave_in(0)
    count = len(server.reports)
    wait_until(lambda: len(server.reports) > count, "the answer that ends the lease")
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=60)


def test_an_expression_that_never_ends_does_not_hold_training_up(followed: Followed, server: LeaseServer) -> None:
    process = followed.start("print('a' * 60); print('saved')", "--throughput-regex=(?P<step>a+)+b")
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output.splitlines()[-1]) == (0, "saved")
    assert "its steps are not read, training goes on" in errors
    assert server.reports[-1]["done"] is True


def test_sigterm_goes_on_to_the_script_whose_exit_code_counts(followed: Followed, server: LeaseServer) -> None:
    process = followed.start(
        f"import signal, sys\nsignal.signal(15, lambda *_: sys.exit(9))\n{textwrap.dedent(ENDLESS)}"
    )
    wait_until(lambda: bool(server.reports) and server.reports[-1]["step"] > 9, "a report of step 10")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 9
    assert followed.message()["outcome"] == "stopped"
    assert followed.message()["step"] >= 10


def test_a_script_that_sigterm_ends_well_is_not_taken_for_done(followed: Followed, server: LeaseServer) -> None:
    process = followed.start(
        f"import signal, sys\nsignal.signal(15, lambda *_: sys.exit(0))\n{textwrap.dedent(ENDLESS)}"
    )
    wait_until(lambda: bool(server.reports) and server.reports[-1]["step"] > 9, "a report of step 10")
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert followed.message()["outcome"] == "stopped"
    assert server.reports[-1]["done"] is False


def test_a_message_that_the_script_left_itself_stays(followed: Followed) -> None:
    process = followed.start("import os; open(os.environ['SYNERGY_TERMINATION_LOG'], 'w').write('{}')")
    process.communicate(timeout=60)
    assert followed.message() == {}


@pytest.mark.parametrize(
    ("options", "unset", "words"),
    [
        (("--throughput-regex=(",), "", "missing )"),
        ((REGEX,), "SYNERGY_JOB", "SYNERGY_JOB is not set"),
        ((REGEX,), "SYNERGY_STEPS", "SYNERGY_STEPS is not set"),
    ],
)
def test_what_cannot_be_followed_ends_at_once_with_a_word_on_it(
    followed: Followed, options: tuple[str, ...], unset: str, words: str
) -> None:
    followed.environ.pop(unset, "")
    process = followed.start("print('never')", *options)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 127
    assert words in errors
    assert "never" not in output
