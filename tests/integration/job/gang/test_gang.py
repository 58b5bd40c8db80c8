"""Jobs of several processes: all leave after the same step, and nobody is left hanging."""

import itertools
import json
import os
import random
import signal
import socket
import subprocess
import time

import pytest

from support.job.lease_server import LeaseServer, go_on, leave_in
from support.job.process import Job, wait_until

RANKS = range(3)


def start(gang: Job, *arguments: str, **environ: str) -> list[subprocess.Popen[str]]:
    return [gang.start(*arguments, rank=rank, **environ) for rank in RANKS]


def end(gang: Job, processes: list[subprocess.Popen[str]]) -> list[int]:
    return [gang.end(process)[0] for process in processes]


@pytest.fixture
def leased_gang(gang: Job, leased_job: Job) -> Job:
    return gang


def test_a_gang_trains_and_only_rank_0_saves_and_reports(leased_gang: Job, lease_server: LeaseServer) -> None:
    processes = [leased_gang.start(rank=rank, NVIDIA_VISIBLE_DEVICES=f"GPU-{rank},GPU-9") for rank in RANKS]
    assert end(leased_gang, processes) == [0, 0, 0]
    assert [len(leased_gang.bodies(rank)) for rank in RANKS] == [60, 60, 60]
    assert not (leased_gang.folder / "saves-1").exists()
    assert leased_gang.termination(2) == {"outcome": "finished", "step": 60, "checkpoint_step": 60}
    assert lease_server.reports[-1]["gpu_uuids"] == ["GPU-0", "GPU-9", "GPU-1", "GPU-2"]
    assert sum(report["done"] for report in lease_server.reports) == 1


def test_a_gang_of_which_rank_0_may_not_write_the_last_checkpoint_goes_on_in_another_run(
    leased_gang: Job, lease_server: LeaseServer
) -> None:
    lease_server.answer = lambda report: (401, b"the token is not valid")
    assert end(leased_gang, start(leased_gang, "--step-ms", "50", SYNERGY_STEPS="20")) == [75, 75, 75]
    why = "the extender refuses this pod's lease"
    assert leased_gang.termination() == {"outcome": "yielded", "step": 0, "checkpoint_step": 0, "unsaved": why}
    assert {leased_gang.termination(rank)["outcome"] for rank in RANKS} == {"yielded"}


@pytest.mark.parametrize("slow", [(5.0, 5.0, 5.0), (1.0, 1.0, 25.0), (25.0, 1.0, 1.0)])
def test_all_leave_after_the_same_step_at_their_own_pace(
    leased_gang: Job, lease_server: LeaseServer, slow: tuple[float, ...]
) -> None:
    """Nothing in the script keeps the processes together; the steps of each take their own random time."""
    lease_server.answer = lambda report: leave_in(0.3) if report["step"] >= 4 else go_on()
    processes = [
        leased_gang.start(
            "--step-ms", str(slow[rank]), "--jitter-ms", str(slow[rank] * 2), rank=rank, SYNERGY_STEPS="600"
        )
        for rank in RANKS
    ]
    assert end(leased_gang, processes) == [75, 75, 75]
    steps = [leased_gang.termination(rank)["step"] for rank in RANKS]
    assert len(set(steps)) == 1
    assert [len(leased_gang.bodies(rank)) for rank in RANKS] == steps
    assert 4 < steps[0] < 600
    assert len(leased_gang.trained()) == steps[0]


def test_a_gang_makes_exactly_its_steps_over_many_runs(leased_gang: Job, lease_server: LeaseServer) -> None:
    for run in itertools.count(1):
        done = len(leased_gang.bodies(0)) if run > 1 else 0
        leaves_soon_after(lease_server, done + random.randint(1, 20))
        processes = start(leased_gang, "--shared", "--step-ms", "10", "--jitter-ms", "10", SYNERGY_RUN=str(run))
        codes = end(leased_gang, processes)
        assert codes in ([75] * 3, [0] * 3)
        if codes == [0] * 3:
            break
    assert run > 1
    assert [leased_gang.bodies(rank) for rank in RANKS] == [list(range(1, 61))] * 3


def leaves_soon_after(server: LeaseServer, step: int) -> None:
    server.answer = lambda report: leave_in(random.uniform(0, 0.1)) if report["step"] >= step else go_on(0.02)


def test_no_rank_is_more_than_two_steps_ahead(gang: Job) -> None:
    processes = [gang.start("--step-ms", "150" if rank == 1 else "0", rank=rank, SYNERGY_STEPS="8") for rank in RANKS]
    for step in range(2, 7):
        gang.wait_for_body(step, rank=1)
        assert len(gang.bodies(0)) <= step + 3
        assert len(gang.bodies(2)) <= step + 3
    assert end(gang, processes) == [0, 0, 0]


@pytest.mark.parametrize("rank", RANKS)
def test_sigterm_to_one_rank_takes_all_away(gang: Job, rank: int) -> None:
    processes = start(gang, "--step-ms", "20")
    gang.wait_for_body(5, rank)
    processes[rank].send_signal(signal.SIGTERM)
    assert end(gang, processes) == [75, 75, 75]
    steps = {gang.termination(rank)["step"] for rank in RANKS}
    assert len(steps) == 1
    assert len(gang.trained()) in steps


def test_sigterm_before_the_gang_is_complete(gang: Job) -> None:
    leader, member = gang.start(rank=0), gang.start(rank=1)
    wait_until(lambda: listens(int(gang.environ["SYNERGY_PEER_PORT"])), "rank 0 to listen")
    leader.send_signal(signal.SIGTERM)
    member.send_signal(signal.SIGTERM)
    assert gang.end(leader)[0] == 75
    assert gang.end(member)[0] in {1, 75, -signal.SIGTERM}
    assert gang.termination() == {"outcome": "yielded", "step": 0, "checkpoint_step": 0}


def test_every_rank_saves_when_asked(gang: Job) -> None:
    processes = start(gang, "--save-on", "all", "--every-steps", "25")
    assert end(gang, processes) == [0, 0, 0]
    assert [(gang.folder / f"saves-{rank}").read_text().split() for rank in RANKS] == [["25", "50", "60"]] * 3


def test_while_the_lease_is_refused_no_rank_saves(leased_gang: Job, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: (403, b"no") if 10 <= report["step"] < 30 else go_on(0.02)
    processes = start(leased_gang, "--save-on", "all", "--every-steps", "20", "--step-ms", "120")
    assert end(leased_gang, processes) == [0, 0, 0]
    saves = [(leased_gang.folder / f"saves-{rank}").read_text().split() for rank in RANKS]
    assert saves[0] == saves[1] == saves[2]
    assert "20" not in saves[0]
    assert saves[0][-1] == "60"


def test_clocks_do_not_decide_for_several_ranks(gang: Job) -> None:
    code, output = gang.end(gang.start("--save-on", "all", "--every-seconds", "5"))
    assert code == 1
    assert "checkpoint_every_seconds cannot be used with save_on='all'" in output


@pytest.mark.parametrize("lost", RANKS)
def test_a_killed_rank_fails_the_others(gang: Job, lost: int) -> None:
    processes = start(gang, "--step-ms", "10")
    gang.wait_for_body(5, lost)
    begun = time.monotonic()
    processes[lost].kill()
    for rank in set(RANKS) - {lost}:
        code, output = gang.end(processes[rank])
        assert code == 1
        assert f"PeerLostError: rank {lost} of mnist was lost" in output
    assert time.monotonic() - begun < 20


def test_a_killed_rank_is_noticed_though_its_loaders_live_on(gang: Job) -> None:
    processes = start(gang, "--step-ms", "10", "--helper")
    gang.wait_for_body(5, 1)
    helper = int((gang.folder / "helper-1").read_text())
    processes[1].kill()
    try:
        for rank in (0, 2):
            processes[rank].wait(20)
            assert processes[rank].returncode == 1
        os.kill(helper, 0)
    finally:
        os.kill(helper, signal.SIGKILL)


def test_a_rank_that_waits_for_a_dead_peer_is_woken(gang: Job) -> None:
    """As in an all-reduce: the body of rank 0 never ends by itself; its `finally` runs, its error names the peer."""
    processes = [gang.start("--impatient", *(["--hang-at", "6"] if rank == 0 else []), rank=rank) for rank in RANKS]
    gang.wait_for_body(6, 1)
    processes[1].kill()
    code, output = gang.end(processes[0])
    assert code == 1
    assert "PeerLostError: rank 1 of mnist was lost" in output
    assert (gang.folder / "finally-0").exists()
    assert gang.end(processes[2])[0] == 1


def test_a_rank_that_cannot_be_woken_is_ended(gang: Job) -> None:
    """As in a collective of a C library that does not come back: the process ends all the same."""
    deaf = ["--impatient", "--hang-at", "6", "--deaf"]
    processes = [gang.start(*(deaf if rank == 2 else []), rank=rank) for rank in RANKS]
    gang.wait_for_body(6, 1)
    processes[1].kill()
    code, output = gang.end(processes[2])
    assert code == 1
    assert "rank 1 of mnist was lost" in output
    assert "the running step does not end: exiting" in output
    assert gang.end(processes[0])[0] == 1


def test_a_peer_that_dies_while_rank_0_saves_does_not_spoil_the_checkpoint(gang: Job) -> None:
    saves = ["--impatient", "--every-steps", "5", "--save-ms", "3000"]
    processes = [gang.start(*(saves if rank == 0 else []), rank=rank) for rank in RANKS]
    gang.wait_for_body(5, 0)
    processes[1].kill()
    code, output = gang.end(processes[0])
    assert code == 1
    assert "rank 1 of mnist was lost" in output
    assert len(gang.trained()) == 5
    assert gang.end(processes[2])[0] == 1


def test_a_save_that_fails_fails_every_rank(gang: Job) -> None:
    processes = start(gang, "--save-fails", "--step-ms", "10")
    gang.wait_for_body(3)
    processes[1].send_signal(signal.SIGTERM)
    assert end(gang, processes) == [1, 1, 1]
    assert [rank for rank in RANKS if (gang.folder / f"termination-{rank}").exists()] == [0]
    assert json.loads((gang.folder / "termination-0").read_text())["function"] == "save"


def test_a_rank_that_breaks_off_alone_ends_the_gang(gang: Job) -> None:
    """The others cannot know whether it is done or dead: they fail, and the job goes on from its checkpoint."""
    processes = [gang.start(*(("--break-at", "10") if rank == 2 else ()), rank=rank) for rank in RANKS]
    assert end(gang, processes) == [1, 1, 0]


def test_ranks_that_load_different_steps_all_fail(gang: Job) -> None:
    for rank, step in ((0, 30), (1, 30), (2, 20)):
        (gang.folder / f"state-{rank}.json").write_text(json.dumps({"step": step, "batches": list(range(step))}))
    processes = start(gang)
    for rank in RANKS:
        code, output = gang.end(processes[rank])
        assert code == 1
        assert "rank 2 begins after step 20 and rank 0 after step 30: every rank's load()" in output
    assert not [rank for rank in RANKS if (gang.folder / f"bodies-{rank}").exists()]


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("SYNERGY_RUN", "2", "this is run 1, not 2"),
        ("SYNERGY_JOB", "cifar", "this is job 'mnist', not 'cifar'"),
        ("SYNERGY_NAMESPACE", "other", "this is namespace 'team', not 'other'"),
        ("WORLD_SIZE", "4", "this is world_size 3, not 4"),
    ],
)
def test_a_process_of_another_run_is_refused_and_disturbs_nobody(
    gang: Job, variable: str, value: str, says: str
) -> None:
    leader = gang.start(rank=0)
    stranger = gang.start(rank=1, **{variable: value})
    code, output = gang.end(stranger)
    assert code == 1
    assert f"PeerLostError: rank 0 refuses this process: {says}" in output
    members = [gang.start(rank=rank) for rank in (1, 2)]
    assert end(gang, [leader, *members]) == [0, 0, 0]


def test_two_processes_of_one_rank_are_one_too_many(gang: Job) -> None:
    processes = [gang.start(rank=0), gang.start(rank=1)]
    wait_until(lambda: listens(int(gang.environ["SYNERGY_PEER_PORT"])), "rank 0 to listen")
    twin = gang.start(rank=1)
    ended = [process for process in (processes[1], twin) if wait_for_exit(process)]
    assert len(ended) == 1
    assert "rank 0 refuses this process: rank 1 is here already" in gang.end(ended[0])[1]
    rest = [processes[0], twin if ended[0] is processes[1] else processes[1], gang.start(rank=2)]
    assert end(gang, rest) == [0, 0, 0]


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"[]\n",
        b'{"done": 7}\n',
        b'{"hello": 1}\n',
        b'{"hello": {"job": "mnist", "namespace": "team", "run": 1, "world_size": 3, "rank": Infinity}}\n',
        b"[" * 16000 + b"\n",
        b"x" * 40000,
    ],
    ids=["http", "list", "no hello", "bad hello", "no rank", "deep", "long"],
)
def test_strangers_disturb_nobody(gang: Job, said: bytes) -> None:
    port = int(gang.environ["SYNERGY_PEER_PORT"])
    leader = gang.start(rank=0)
    wait_until(lambda: listens(port), "rank 0 to listen")
    with socket.create_connection(("127.0.0.1", port)) as talker, socket.create_connection(("127.0.0.1", port)):
        talker.sendall(said)
        talker.settimeout(10)
        assert hears_the_end(talker)
        assert end(gang, [leader, gang.start(rank=1), gang.start(rank=2)]) == [0, 0, 0]


def test_a_gang_without_a_key_comes_together_too(gang: Job) -> None:
    del gang.environ["SYNERGY_GANG_KEY_FILE"]
    assert end(gang, start(gang)) == [0, 0, 0]


def test_a_port_that_is_taken_is_named(gang: Job) -> None:
    with socket.create_server(("", int(gang.environ["SYNERGY_PEER_PORT"]))):
        code, output = gang.end(gang.start(rank=0))
    assert code == 1
    assert "ConfigError: rank 0 cannot listen on SYNERGY_PEER_PORT" in output


@pytest.mark.parametrize(
    ("rank", "says"), [(0, "ranks [1, 2] did not come within 1 s"), (1, "did not answer within 1 s")]
)
def test_a_gang_that_does_not_come_together_fails(gang: Job, rank: int, says: str) -> None:
    wrapper = gang.folder / "wrapper.py"
    wrapper.write_text(
        "import runpy, sys, synergy_job.gang.base\n"
        "synergy_job.gang.base.JOIN_TIMEOUT_S = 1.0\n"
        f"sys.argv[0] = {str(gang.script)!r}\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    gang.script = wrapper
    code, output = gang.end(gang.start(rank=rank))
    assert code == 1
    assert says in output


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def hears_the_end(talker: socket.socket) -> bool:
    try:
        while talker.recv(100):
            pass  # why it is refused
        return True
    except ConnectionResetError:
        return True


def wait_for_exit(process: subprocess.Popen[str]) -> bool:
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        return False
    return True
