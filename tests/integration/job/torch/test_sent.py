"""A gang of real gloo that tells nothing of its model: rank 0 reports what it sends."""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from support.job.example import Example
from support.job.lease_server import LeaseServer, go_on

ELEMENTS = 1_000_000
SCRIPT = f"""
    import os, torch, torch.distributed as dist, synergy_job
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    gradients = torch.ones({ELEMENTS})
    dist.broadcast(gradients, 0)
    MODEL = TELL
    for _ in synergy_job.iterate(range(8), model=MODEL):
        dist.all_reduce(gradients)
"""


def reported(example: Example, lease_server: LeaseServer, folder: Path, model: str) -> list[dict[str, object]]:
    lease_server.answer = lambda report: go_on(next_report_s=0.3)
    script = folder / "train.py"
    script.write_text(textwrap.dedent(SCRIPT).replace("TELL", model))
    workers = [
        subprocess.Popen(
            [example.python, str(script)],
            env={**os.environ, **example.environ, "WORLD_SIZE": "2", "RANK": str(rank), "SYNERGY_STEPS": "150",
                 "SYNERGY_TERMINATION_LOG": str(folder / f"end-{rank}")},
            process_group=0,
        )
        for rank in range(2)
    ]  # fmt: skip
    example.running += workers  # type: ignore[arg-type]
    assert [worker.wait(100) for worker in workers] == [0, 0]
    return lease_server.reports


def test_rank_0_reports_the_volume_of_all_reduce(example: Example, lease_server: LeaseServer, tmp_path: Path) -> None:
    last = reported(example, lease_server, tmp_path, "None")[-1]
    assert last["sent_bytes_per_step"] == pytest.approx(4 * ELEMENTS, rel=0.03), "n = 2: 2 (n - 1) / n = 1"
    assert last["world_size"] == 2


def test_a_job_that_tells_its_model_reports_that_alone(
    example: Example, lease_server: LeaseServer, tmp_path: Path
) -> None:
    last = reported(example, lease_server, tmp_path, f"[{4 * ELEMENTS}]")[-1]
    assert last["model_bytes"] == 4 * ELEMENTS
    assert "sent_bytes_per_step" not in last
