"""What a cluster did, exported and simulated again: the same average completion time within 5 %."""

import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import synergy_devcluster
from support.on_cluster.jobs import matrix, reaches, restricted_template, submit
from support.on_cluster.service_account import in_namespace
from synergy_kube import KubeClient
from synergy_kube.resources import TRAINING_JOBS

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.usefixtures("dashboard", "pools"),
    pytest.mark.timeout(900),
]

PROGRAMS = Path(sys.executable).parent
SPEED = 10.0
STEPS = (150, 300, 200, 400, 250, 300, 200, 350)
"""Of jobs that come 4 s apart and have one of two GPUs each: 15 to 40 s."""
TRAIN = f"""
import time, synergy_job
begin = time.monotonic()
for index, step in enumerate(synergy_job.iterate(range(10**6))):
    time.sleep(max(0.0, begin + (index + 1) / {SPEED} - time.monotonic()))
"""
"""Trains at its speed exactly, however busy the machine is."""


def said(kubeconfig: Path, *words: str, folder: Path) -> str:
    done = subprocess.run(
        [str(PROGRAMS / words[0]), *words[1:]], env={"KUBECONFIG": str(kubeconfig), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=120, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "only what objects" not in done.stderr, "the dashboard's history was not asked"
    return done.stdout


async def test_an_exported_run_takes_as_long_in_the_simulator(
    kube: KubeClient, namespace: str, policy: Callable[..., Any], devcluster: synergy_devcluster.Cluster, tmp_path: Path
) -> None:
    await policy(policy="2d-las", mechanism="tune", roundSeconds=30)
    kubeconfig = in_namespace(devcluster.kubeconfig, namespace, tmp_path / "admin")
    for number, steps in enumerate(STEPS):
        await submit(
            kube, namespace, f"job-{number}", gpus=1, gpuTypes=["A100"], steps=steps, preemption="Signal",
            template=restricted_template(["python3", "-c", TRAIN]),
            profile={"mode": "Provided", "matrices": [matrix("A100", {100: SPEED}, 64 << 20)]},
            resources={"max": {"cpu": "400m", "memory": "256Mi"}},
        )  # fmt: skip
        await asyncio.sleep(4)
    for number in range(len(STEPS)):
        await reaches(kube, namespace, f"job-{number}", "Succeeded", seconds=400)
    await kube.delete(TRAINING_JOBS, "job-1", namespace)  # the history has it
    await asyncio.sleep(3)  # changes of half a second are one transaction
    told = said(kubeconfig, "kubectl-synergy", "export", "--out", "past", folder=tmp_path)
    print(told)
    first, second, third = told.splitlines()
    assert first.startswith(f"{len(STEPS)} jobs written")
    assert second.startswith(f"{len(STEPS)} of them ended")
    found = json.loads(said(kubeconfig, "kubectl-synergy", "export", "--out", "past", "-o", "json", folder=tmp_path))
    again = shlex.split(third.removeprefix("the same again: "))
    simulated = json.loads(said(kubeconfig, *again, "--json", folder=tmp_path))
    cluster, simulator = found["measured"]["avg_jct_s"], simulated["avg_jct_s"]
    print(f"average JCT: {cluster:.1f} s on the cluster, {simulator:.1f} s simulated ({simulator / cluster - 1:+.1%})")
    assert simulator == pytest.approx(cluster, rel=0.05)  # measured: 0.4 %
