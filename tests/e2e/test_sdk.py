"""The SDK on the installed product: a notebook from submit to resume, and what a function's failure looks like."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import kube_synergy
import synergy_devcluster
from support.on_cluster.jobs import EXAMPLES_IMAGE
from support.on_cluster.service_account import in_namespace
from synergy_kube import KubeClient
from synergy_kube.resources import TRAINING_JOBS

pytestmark = pytest.mark.e2e

NOTEBOOK = "examples/sdk/submit_to_resume.ipynb"
EXECUTE = """
import json, sys
import nbformat
from nbclient import NotebookClient

book = nbformat.read(sys.argv[1], 4)
parameters = next(cell for cell in book.cells if "parameters" in cell.metadata.get("tags", []))
parameters.source += sys.argv[2]
# a widget that a thread updates is seen by a browser, but nbclient keeps only what comes while its own cell runs
book.cells.append(nbformat.v4.new_code_cell("shown.join(30)\\nprint('CARD', shown.widget.value)"))
NotebookClient(book, timeout=110).execute()
widgets = book.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
shown = [one for one in widgets.values() if one["model_name"] == "HTMLModel"]
texts = [out.get("text", "") for cell in book.cells for out in cell.get("outputs", [])]
print(json.dumps({"widgets": len(shown), "texts": texts}))
"""
LITTLE = {"max": {"cpu": "400m", "memory": "256Mi"}}


@pytest_asyncio.fixture(autouse=True)
async def calm(policy: Callable[..., Any], pools: None) -> None:
    """Nothing is preempted meanwhile: first come, first served."""
    await policy(policy="fifo", mechanism="tune")


@pytest.fixture
def options(devcluster: synergy_devcluster.Cluster, namespace: str) -> dict[str, Any]:
    """A small job on the real node."""
    return {
        "kubeconfig": str(devcluster.kubeconfig), "namespace": namespace, "image": EXAMPLES_IMAGE,
        "gpu_types": ["A100"], "profile": "Skip", "spec": {"resources": LITTLE, "backoffLimit": 0},
    }  # fmt: skip


async def test_the_notebook_runs_from_submit_to_resume(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, namespace: str, repository: Path, tmp_path: Path
) -> None:
    kubeconfig = in_namespace(devcluster.kubeconfig, namespace, tmp_path / "kubeconfig")
    given = f'\nIMAGE = "{EXAMPLES_IMAGE}"\nGPU_TYPES = ["A100"]\nSPEC = {{"resources": {LITTLE!r}}}\n'
    began = time.monotonic()
    environment = {"KUBECONFIG": str(kubeconfig), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", EXECUTE, NOTEBOOK, given], cwd=repository, env=environment,
        capture_output=True, text=True, check=False, timeout=250,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert time.monotonic() - began < 120
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["widgets"] == 1
    (card,) = (text for text in found["texts"] if text.startswith("CARD "))
    assert "Succeeded" in card
    assert " of 800" in card
    assert any("resumes at step" in text and "begins at step" in text for text in found["texts"])
    assert (await kube.list(TRAINING_JOBS, namespace))["items"] == []


def fails() -> None:
    raise RuntimeError("no data here")


def unusable() -> object:
    return {"model": object()}


async def test_what_a_function_fails_with_comes_back(options: dict[str, Any]) -> None:
    job = await kube_synergy.aio.submit(fails, steps=1, **options)
    with pytest.raises(kube_synergy.JobFailedError, match="RuntimeError: no data here") as caught:
        await job.result(120)
    assert 'main.py", line' in caught.value.traceback
    assert caught.value.reason
    assert "kube-synergy-result" not in await job.logs()
    with pytest.raises(kube_synergy.NameTakenError, match=job.name):
        await kube_synergy.aio.submit(fails, steps=1, **{**options, "name": job.name})
    await job.delete()


async def test_a_script_has_no_result_and_a_function_may_return_what_is_no_json(
    kube: KubeClient, namespace: str, options: dict[str, Any], tmp_path: Path
) -> None:
    script = tmp_path / "hello.py"
    script.write_text("import sys\nprint('hello', sys.argv[1:])\n")
    first = await asyncio.to_thread(kube_synergy.submit, str(script), args=[1, "two"], steps=1, **options)
    second = await asyncio.to_thread(kube_synergy.submit, unusable, steps=1, **options)
    assert (await asyncio.to_thread(first.wait, 120)).phase == "Succeeded"
    assert "hello ['1', 'two']" in await asyncio.to_thread(first.logs)
    with pytest.raises(kube_synergy.NoResultError, match="runs a script"):
        await asyncio.to_thread(first.result)
    with pytest.raises(kube_synergy.NoResultError, match="not JSON"):
        await asyncio.to_thread(second.result, 120)
    await asyncio.to_thread(second.delete)
    with pytest.raises(kube_synergy.JobNotFoundError):
        await asyncio.to_thread(second.status)
