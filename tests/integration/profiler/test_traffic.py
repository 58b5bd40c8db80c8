"""What real gloo sends, against the volume of a ring all-reduce: 2 (n - 1) / n of the bytes from each worker."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.job import debian_torch
from support.job.harness import Harness
from support.job.process import free_port, wait_until
from synergy_job.sockets import SocketsError
from synergy_profiler.traffic import measure
from synergy_profiler.traffic.measure import TrafficMeter

ROOT = Path(__file__).parents[3]
PATH = {"PYTHONPATH": f"{ROOT / 'profiler-job'}:{ROOT / 'job'}"}
LAYER = 1000
MODEL_BYTES = 2 * (LAYER * LAYER + LAYER) * 4
DDP = f"""
    import torch, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    import synergy_job
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    layers = [torch.nn.Linear({LAYER}, {LAYER}) for _ in range(2)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    for _ in synergy_job.iterate(range(8)):
        model(torch.ones(4, {LAYER})).sum().backward()
"""
"""Tells nothing of its model."""
REDUCE = """
    import sys, time
    import torch, torch.distributed as dist
    import synergy_job
    dist.init_process_group("gloo")
    gradients = torch.ones(312_500)
    for _ in synergy_job.iterate(range(8)):
        if HIDDEN:
            work = dist.all_reduce(gradients, async_op=True)
        time.sleep(0.1)
        work.wait() if HIDDEN else dist.all_reduce(gradients)
"""
"""Computes for 0.1 s, and meanwhile or afterwards sends 1.25 MB."""
LAUNCH = """
    import os, subprocess, sys
    count = COUNT
    names = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ["PET_MASTER_PORT"]}
    workers = [
        subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, **names, "RANK": str(rank)})
        for rank in range(count)
    ]
    sys.exit(max(worker.wait() for worker in workers))
"""
"""Starts workers as torchrun does, or as a script of its own, by variables of the pod."""
COUNTS = {
    "torchrun": 'int(os.environ["PET_NPROC_PER_NODE"])',
    "world": 'int(os.environ["WORLD_SIZE"])',
    "devices": 'len(os.environ["NVIDIA_VISIBLE_DEVICES"].split(","))',
}
SLOW_LINK = (
    'ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate 100mbit burst 128kb latency 500ms && exec "$@"'
)


@pytest.fixture(autouse=True)
def with_torch() -> None:
    debian_torch.required()


def command(harness: Harness, script: str, by: str = "torchrun") -> list[str]:
    launch = LAUNCH.replace("COUNT", COUNTS[by])
    return [str(debian_torch.PYTHON), str(harness.script(launch)), str(harness.script(script))]


def environment(workers: int) -> dict[str, str]:
    devices = ",".join(f"GPU-{number}" for number in range(workers))
    counts = {"PET_NPROC_PER_NODE": str(workers), "WORLD_SIZE": str(workers), "NVIDIA_VISIBLE_DEVICES": devices}
    return {**PATH, **counts, "PET_MASTER_PORT": str(free_port())}


@pytest.mark.parametrize("workers", [2, 3])
def test_a_profile_run_sees_the_volume_of_all_reduce(harness: Harness, workers: int) -> None:
    options = ("--warmup-steps", "3", "--steps", "40", "--min-seconds", "0", "--workers", str(workers))
    run = harness.run_command(command(harness, DDP), *options, **environment(workers))
    sent = run.result["traffic"]
    assert sent["source"] == "Sockets"
    assert sent["bytes_per_step"] == pytest.approx(2 * (workers - 1) / workers * MODEL_BYTES, rel=0.03)
    assert sent["model_bytes"] == pytest.approx(MODEL_BYTES, rel=0.03)
    assert sent["sending_seconds"] > 0


def test_a_job_of_one_worker_sends_nothing(harness: Harness) -> None:
    options = ("--warmup-steps", "1", "--steps", "5", "--min-seconds", "0")
    for workers in ("1", "2"):  # also where it was expected to have two
        run = harness.run_command(command(harness, DDP), *options, "--workers", workers, **environment(1))
        assert run.result["outcome"] == "measured"
        assert "traffic" not in run.result


_ATTEMPTS = 6
"""Some ten seconds each."""


def hidden_part(harness: Harness, by: str, *, hidden: bool) -> float:
    """The overlap that is measured over a link of 100 Mbit/s, in a network namespace of its own.

    Where other work slows the steps it is not told, as it should be; then it is measured again.
    """
    for _ in range(_ATTEMPTS):
        sent = _measured(harness, by, hidden=hidden)
        assert sent["model_bytes"] == pytest.approx(1_250_000, rel=0.06)
        if "overlap" in sent:
            return float(sent["overlap"])
    pytest.fail(f"the overlap was not told in any of {_ATTEMPTS} measurements")


def _measured(harness: Harness, by: str, *, hidden: bool) -> dict[str, float]:
    options = ["--warmup-steps", "3", "--steps", "20", "--min-seconds", "0", "--workers", "2"]
    script = REDUCE.replace("HIDDEN", str(hidden))
    inside = ["unshare", "--net", "--", "sh", "-c", SLOW_LINK, "apart"]
    done = subprocess.run(
        [*inside, *harness.command(*options, of=command(harness, script, by))],
        env={**os.environ, **environment(2)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads((harness.folder / "termination-log").read_text())["traffic"]
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace, which needs root")
@pytest.mark.parametrize("by", COUNTS)
def test_a_step_that_hides_what_it_sends_is_told_from_one_that_does_not(harness: Harness, by: str) -> None:
    assert hidden_part(harness, by, hidden=False) == pytest.approx(0.0, abs=0.25)
    assert hidden_part(harness, by, hidden=True) > 0.45


WORKER = """
    import json, os, sys, time
    import torch, torch.distributed as dist
    from synergy_job.sockets import connections, sent_between
    dist.init_process_group("gloo")
    gradients = torch.ones(2_000_000)
    dist.all_reduce(gradients)
    dist.barrier()
    def to_peer():
        return {cookie: one for cookie, one in connections().items() if one.remote[0] == sys.argv[1]}
    before = to_peer()
    for _ in range(20):
        dist.all_reduce(gradients)
    dist.barrier()
    time.sleep(0.5)
    print(json.dumps(sum(one.sent_bytes for one in sent_between(before, to_peer()))))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces, which needs root")
def test_two_workers_in_two_network_namespaces_send_what_all_reduce_sends(harness: Harness) -> None:
    script, workers = harness.script(WORKER), []
    wait = 'read -r _ && ip link set lo up && exec "$@"'
    for rank in range(2):
        environ = {**os.environ, **PATH, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "10.77.0.1"}
        environ |= {"MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": f"w{rank}"}
        inside = ["unshare", "--net", "--", "sh", "-c", wait, "apart", str(debian_torch.PYTHON), str(script)]
        workers.append(
            subprocess.Popen(
                [*inside, f"10.77.0.{2 - rank}"],
                env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
    try:
        _join(*(worker.pid for worker in workers))
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        told = [worker.communicate(timeout=100)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    for text in told:
        assert int(text) == pytest.approx(20 * 8_000_000, rel=0.02), "n = 2: 2 (n - 1) / n = 1"


def _join(one: int, other: int) -> None:
    """A cable between the namespaces of two processes, once both are in theirs."""
    own = os.readlink("/proc/self/ns/net")
    wait_until(lambda: all(os.readlink(f"/proc/{pid}/ns/net") != own for pid in (one, other)), "their namespaces")
    steps = [f"ip link add w0 netns {one} type veth peer name w1 netns {other}"]
    for pid, name, host in ((one, "w0", 1), (other, "w1", 2)):
        steps.append(f"nsenter --net=/proc/{pid}/ns/net ip addr add 10.77.0.{host}/24 dev {name}")
        steps.append(f"nsenter --net=/proc/{pid}/ns/net ip link set {name} up")
    for step in steps:
        subprocess.run(step.split(), check=True)


def test_a_kernel_that_tells_nothing_is_no_reason_not_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise SocketsError("no")

    monkeypatch.setattr(measure, "connections", refused)
    meter = TrafficMeter(2)
    meter.begin(os.getpid())
    meter.end(os.getpid())
    assert meter.traffic(5) is None
    meter.close()
    assert not Path(meter.environment["NCCL_DEBUG_FILE"]).parent.exists()
