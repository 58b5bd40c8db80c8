"""States that lie on many ranks: real gloo processes, preempted, killed, and continued by other numbers of them."""

import itertools
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.job import debian_torch, newer_torch
from support.job.lease_server import LeaseServer, go_on, leave_in
from support.job.process import free_port, kill_what_is_left

pytestmark = pytest.mark.timeout(900)

SCRIPT = Path(__file__).parent / "sharded_training.py"
STEPS = 90


@pytest.fixture(autouse=True)
def with_newer_torch() -> None:
    newer_torch.required()


@dataclass
class Gang:
    """Runs of one job; each may have another number of ranks."""

    folder: Path
    environ: dict[str, str]
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, kind: str, ranks: int, run: int, *options: str) -> list[subprocess.Popen[str]]:
        shared = {"MASTER_PORT": str(free_port()), "SYNERGY_PEER_PORT": str(free_port()), "WORLD_SIZE": str(ranks)}
        started = []
        for rank in range(ranks):
            own = {"RANK": str(rank), "SYNERGY_TERMINATION_LOG": str(self.folder / f"termination-{rank}")}
            started.append(
                subprocess.Popen(
                    [*newer_torch.COMMAND, str(SCRIPT), kind, "--checkpoint", str(self.checkpoint), *options],
                    env={**os.environ, **self.environ, **shared, **own, "SYNERGY_RUN": str(run)},
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    process_group=0,
                )
            )
        self.running += started
        return started

    def end(self, processes: list[subprocess.Popen[str]], *codes: int) -> list[str]:
        """What each rank printed."""
        outputs = [process.communicate(timeout=240)[0] for process in processes]
        assert [process.returncode for process in processes] == list(codes or [0] * len(processes)), "\n".join(outputs)
        return outputs

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def saves(self) -> list[Path]:
        return sorted(self.checkpoint.glob("step-*"))


@pytest.fixture
def gang(tmp_path: Path, lease_server: LeaseServer, token_file: Path) -> Iterator[Gang]:
    key = tmp_path / "gang-key"
    key.write_text("0123456789abcdef" * 4)
    environ = {
        **newer_torch.ENVIRON,
        "SYNERGY_JOB": "sharded",
        "SYNERGY_NAMESPACE": "team",
        "SYNERGY_STEPS": str(STEPS),
        "SYNERGY_EXTENDER_URL": lease_server.url,
        "SYNERGY_TOKEN_FILE": str(token_file),
        "SYNERGY_CA_CERT": lease_server.ca_cert,
        "SYNERGY_GANG_KEY_FILE": str(key),
        "MASTER_ADDR": "localhost",
    }
    made = Gang(tmp_path, environ)
    yield made
    kill_what_is_left(made.running)


def losses(output: str) -> dict[int, str]:
    return {int(step): loss for step, loss in re.findall(r"^step (\d+) loss (\S+)", output, flags=re.MULTILINE)}


def whole(output: str, what: str) -> str:
    """The digest of the whole state, as it was last printed with these words."""
    return re.findall(rf"{what} whole (\w{{16}})", output)[-1]


def leaves_after(server: LeaseServer, step: int) -> None:
    server.answer = lambda report: leave_in(0.0) if report["step"] >= step else go_on(0.02)


def stays(server: LeaseServer) -> None:
    server.answer = lambda report: go_on()


@pytest.mark.parametrize("kind", ["fsdp", pytest.param("tensor", marks=pytest.mark.long)])
def test_a_job_of_two_ranks_that_is_preempted_and_killed_is_the_one_that_was_left_alone(
    gang: Gang, lease_server: LeaseServer, kind: str
) -> None:
    alone = gang.end(gang.start(kind, 2, 1))
    assert [sorted(losses(one)) for one in alone] == [list(range(1, STEPS + 1))] * 2
    shards = [file.stat().st_size for file in gang.saves[-1].glob("*.distcp")]
    assert len(shards) == 2, "each rank writes its own"
    shutil.rmtree(gang.checkpoint)

    told: list[list[str]] = []
    for run, step in ((1, 13), (2, 45)):
        leaves_after(lease_server, step)
        told.append(gang.end(gang.start(kind, 2, run, "--step-ms", "25"), 75, 75))
    stays(lease_server)
    killed = gang.start(kind, 2, 3, "--step-ms", "25")
    read = ""
    assert killed[1].stdout is not None
    for line in killed[1].stdout:
        read += line
        if line.startswith("step 75 "):
            break
    killed[1].send_signal(signal.SIGKILL)
    read += killed[1].stdout.read()
    rest = killed[0].communicate(timeout=240)[0]
    assert killed[0].returncode not in (0, 75), "the other one learns that its peer is gone"
    told.append([rest, read])
    told.append(gang.end(gang.start(kind, 2, 4)))

    assert re.search(r"loaded step [6-8]\d ", told[-1][0]), "the last one that the killed run saved, or resumed from"
    for rank in (0, 1):
        runs = [losses(outputs[rank]) for outputs in told]
        assert all(one and one.items() <= losses(alone[rank]).items() for one in runs)
        assert set().union(*runs) == set(range(1, STEPS + 1))
        assert [min(one) for one in runs[1:3]] == [max(one) + 1 for one in runs[:2]], "no step is made twice"
        assert whole(told[-1][rank], "done") == whole(alone[rank], "done")
    assert len(gang.saves) == 2, "the newest save and the one before it"


@pytest.mark.parametrize("kind", [pytest.param("fsdp", marks=pytest.mark.long), "tensor"])
def test_other_numbers_of_ranks_take_the_same_state_over(gang: Gang, lease_server: LeaseServer, kind: str) -> None:
    def preempted(ranks: int, run: int, step: int) -> str:
        leaves_after(lease_server, step)
        outputs = gang.end(gang.start(kind, ranks, run, "--step-ms", "25"), *[75] * ranks)
        assert len({whole(one, r"saved step \d+") for one in outputs}) == 1
        return outputs[0]

    told = [preempted(ranks, run, step) for run, (ranks, step) in enumerate(((2, 8), (3, 21), (1, 33)), start=1)]
    for before, after in itertools.pairwise(told):
        assert whole(after, r"loaded step \d+") == whole(before, r"saved step \d+")
        assert min(losses(after)) == max(losses(before)) + 1
    assert "1 processes saved it" not in told[1]
    assert "2 processes saved it, not 3" in told[1]

    at_rest = gang.folder / "at-rest"
    shutil.copytree(gang.checkpoint, at_rest)
    stays(lease_server)
    alone = gang.end(gang.start(kind, 3, 4))
    shutil.rmtree(gang.checkpoint)
    at_rest.rename(gang.checkpoint)
    first = preempted(3, 4, 60)
    stays(lease_server)
    last = gang.end(gang.start(kind, 3, 5))
    assert losses(first) | losses(last[0]) == losses(alone[0])
    assert {whole(one, "done") for one in last} == {whole(one, "done") for one in alone}


@pytest.mark.parametrize("most", [100, 20_000], ids=["random numbers", "shards"])
def test_a_rank_that_cannot_write_fails_all_and_the_save_before_counts(gang: Gang, most: int) -> None:
    outputs = gang.end(gang.start("fsdp", 2, 1, "--most-bytes", str(most)), 1, 1)
    for output in outputs:
        assert "CheckpointError: rank 1: " in output
        assert "File too large" in output
        assert max(losses(output)) == 40
    assert "loaded step 20 " in gang.end(gang.start("fsdp", 2, 2))[0]


def test_while_the_lease_is_refused_no_rank_saves(gang: Gang, lease_server: LeaseServer) -> None:
    """A rank that went on without the others would leave them in the save's collectives."""
    lease_server.answer = lambda report: (403, b"no") if 10 <= report["step"] < 30 else go_on(0.02)
    outputs = gang.end(gang.start("fsdp", 2, 1, "--step-ms", "100"))
    for output in outputs:
        saved = [int(step) for step in re.findall(r"saved step (\d+)", output)]
        assert 20 not in saved
        assert saved[-1] == STEPS


def test_damaged_shards_are_passed_over(gang: Gang, lease_server: LeaseServer) -> None:
    leaves_after(lease_server, 45)
    gang.end(gang.start("fsdp", 2, 1, "--step-ms", "25"), 75, 75)
    stays(lease_server)
    newest = gang.saves[-1]
    (newest / "rank-1.pt").unlink()
    outputs = gang.end(gang.start("fsdp", 2, 2))
    assert all("loaded step 40 " in one for one in outputs)
    assert f"the checkpoint {newest} is damaged (rank 1: FileNotFoundError" in outputs[0]
    for shards in gang.checkpoint.glob("step-*/__0_0.distcp"):
        shards.write_bytes(shards.read_bytes()[: shards.stat().st_size // 2])
    outputs = gang.end(gang.start("fsdp", 2, 3), 1, 1)
    for one in outputs:
        assert "no checkpoint before it can be read either" in one, one


def test_the_parts_and_the_path_must_be_the_same(tmp_path: Path) -> None:
    told = newer_torch.run(f"""
import torch, synergy_job, synergy_job.torch

def refused(function):
    try:
        function()
    except synergy_job.CheckpointError as error:
        print(error)
    else:
        raise AssertionError("not refused")

model, path = torch.nn.Linear(2, 1), {str(tmp_path / "one")!r}
average = torch.optim.swa_utils.AveragedModel(model)
state = synergy_job.torch.state(path, model=model, average=average, sharded=True)
assert state.load() is None
state.save(3)
weight = model.weight.detach().clone()
torch.nn.init.zeros_(model.weight)
assert state.load() == 3 and torch.equal(model.weight, weight)
refused(synergy_job.torch.state(path, model=model, sharded=True).load)
open(path + "-file", "w").close()
refused(synergy_job.torch.state(path + "-file", model=model, sharded=True).load)
""").splitlines()
    assert "holds average, model, but state() was given model: pass the same parts" in told[-2]
    assert "one-file is a file: a sharded state needs a path of its own" in told[-1]


def test_an_older_pytorch_says_what_it_lacks() -> None:
    debian_torch.required()
    told = debian_torch.run("""
import torch, synergy_job.torch
try:
    synergy_job.torch.state("x", model=torch.nn.Linear(2, 1), sharded=True)
except ValueError as error:
    print(error)
""")
    assert "sharded=True needs torch.distributed.checkpoint of PyTorch 2.2 or newer, and this is PyTorch 1.13" in told
