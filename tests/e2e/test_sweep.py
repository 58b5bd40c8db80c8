"""The manifest of a sweep (docs/sweeps.md) on a real kubelet: a Dask scheduler, workers, and a Job that compares
policies on them with the results of one machine."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import synergy_devcluster
from support.programs import run
from support.waiting import eventually
from synergy_cli.main import main
from synergy_devcluster.images.project import load_images
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient
from synergy_kube.resources import JOBS

pytestmark = [pytest.mark.e2e, pytest.mark.long]  # an image of 500 MB

INPUTS = {"trace": "trace.csv", "profiles": "profiles.json", "cluster": "cluster.yaml"}
MEASURED = {"plan_mean_ms", "plan_p99_ms", "wall_s"}
Json = dict[str, Any]


async def test_a_sweep_on_the_cluster_finds_what_one_machine_finds_and_keeps_it(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, namespace: str, repository: Path
) -> None:
    load_images(devcluster, only=("simulator",), report=print)
    files = {name: repository / "examples" / "simulation" / file for name, file in INPUTS.items()}
    inputs = [f"--from-file={file}" for file in files.values()]
    await run(devcluster, "kubectl", "create", "configmap", "sweep-inputs", "--namespace", namespace, *inputs)
    manifest = for_a_small_machine(repository / "examples" / "sweep" / "dask.yaml")
    await run(devcluster, "kubectl", "apply", "--namespace", namespace, "--filename", "-", text_in=manifest)
    first = await finished(devcluster, kube, namespace)
    assert "--keep: 0 of 6 simulations" in first
    options = ["--policies=fifo,srtf,las", "--mechanisms=proportional,tune", "--processes=1", "--json"]
    here = CliRunner().invoke(main, ["compare", *(f"--{name}={file}" for name, file in files.items()), *options])
    assert figures(first) == figures(here.stdout)

    await run(devcluster, "kubectl", "delete", "--namespace", namespace, "job/sweep", "--wait")
    await run(devcluster, "kubectl", "apply", "--namespace", namespace, "--filename", "-", text_in=manifest)
    again = await finished(devcluster, kube, namespace)
    assert "--keep: 6 of 6 simulations" in again
    assert figures(again) == figures(first)
    await run(devcluster, "kubectl", "delete", "--namespace", namespace, "--filename", "-", text_in=manifest)


def for_a_small_machine(file: Path) -> str:
    """The manifest with two workers that ask for a fifth of a core, all on the real node. The Job prints JSON."""
    documents = list(yaml.safe_load_all(file.read_text()))
    named = {(one["kind"], one["metadata"]["name"]): one for one in documents}
    workers, job = named["Deployment", "sweep-worker"]["spec"], named["Job", "sweep"]["spec"]
    workers["replicas"] = 2
    workers["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "200m"
    job["template"]["spec"]["containers"][0]["args"].append("--json")
    for kind, name in (("Deployment", "sweep-scheduler"), ("Deployment", "sweep-worker"), ("Job", "sweep")):
        named[kind, name]["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": REAL_NODE}
    return yaml.safe_dump_all(documents)


async def finished(devcluster: synergy_devcluster.Cluster, kube: KubeClient, namespace: str) -> str:
    """What the Job printed, once it is done."""

    async def done() -> bool:
        status = (await kube.get(JOBS, "sweep", namespace)).get("status") or {}
        failed = [one for one in status.get("conditions") or () if one["type"] == "Failed" and one["status"] == "True"]
        assert not failed, failed
        return bool(status.get("succeeded"))

    try:
        await eventually(done, seconds=240, what="the sweep to end")
    except AssertionError as error:
        logs = await run(
            devcluster, "kubectl", "logs", f"--namespace={namespace}", "--selector=app.kubernetes.io/name=sweep"
        )
        raise AssertionError(f"{error}; {logs}") from None
    return await run(devcluster, "kubectl", "logs", "--namespace", namespace, "job/sweep")


def figures(printed: str) -> list[Json]:
    """All but how long it took, which is measured."""
    runs = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])["runs"]
    return [{key: value for key, value in one.items() if key not in MEASURED} for one in runs]
