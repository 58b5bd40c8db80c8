"""What people see through kubectl: columns, short names, categories, explanations."""

import math

import pytest
import yaml

from support.api_server import manifests as samples
from support.programs import attempt, run
from synergy_api.generation.crd import KINDS, CustomResource
from synergy_api.names import API_VERSION
from synergy_devcluster import Cluster
from synergy_kube import KubeClient
from synergy_kube.resources import TENANTS, TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("custom_resources")]


async def _job_with_status(kube: KubeClient, namespace: str) -> None:
    await kube.create(TRAINING_JOBS, samples.SMALL_JOB, namespace)
    status = {
        "phase": "Running",
        "allocation": {"run": 3, "state": "Granted", "gpuType": "T4", "nodes": 1},
        "service": {"preemptions": 2},
        "summary": {
            "progress": "4/10",
            "start": "0/10",
            "gpus": "1/2 T4",
            "cpu": "12/6",
            "memory": "48/24Gi",
            "speed": "3.2 steps/s",
            "partners": "other",
        },
    }
    await kube.apply(TRAINING_JOBS, "small", {"status": status}, namespace, manager="test", subresource="status")


def _cells(table: str) -> dict[str, str]:
    """The cells of a table with one row by their headers: kubectl aligns them, and an empty one is blank."""
    header, row = table.rstrip("\n").split("\n")
    names = header.split()
    starts = [header.index(name) for name in names]
    ends = [*starts[1:], len(row)]
    return {name: row[start:end].strip() for name, start, end in zip(names, starts, ends, strict=True)}


async def test_the_columns_of_a_training_job_show(devcluster: Cluster, kube: KubeClient, namespace: str) -> None:
    await _job_with_status(kube, namespace)
    cells = _cells(await run(devcluster, "kubectl", "-n", namespace, "get", "tj", "small"))
    del cells["AGE"]
    assert cells == {
        "NAME": "small",
        "PHASE": "Running",
        "PROGRESS": "4/10",
        "GPUS": "1/2 T4",
        "REASON": "",
        "QUEUE": "",
    }, "and of both texts on progress the reported one"


async def test_the_wide_columns_show_what_it_was_given_and_how_it_goes(
    devcluster: Cluster, kube: KubeClient, namespace: str
) -> None:
    await _job_with_status(kube, namespace)
    cells = _cells(await run(devcluster, "kubectl", "-n", namespace, "get", "tj", "small", "-o", "wide"))
    assert dict(list(cells.items())[7:]) == {
        "START": "",
        "CPU": "12/6",
        "MEMORY": "48/24Gi",
        "SPEED": "3.2 steps/s",
        "PREEMPTIONS": "2",
        "PARTNERS": "other",
        "RUN": "3",
        "NODES": "1",
        "CLUSTER": "",
    }


async def test_a_waiting_job_that_never_ran_shows_all_its_steps_and_its_position(
    devcluster: Cluster, kube: KubeClient, namespace: str
) -> None:
    await kube.create(TRAINING_JOBS, samples.SMALL_JOB, namespace)
    status = {
        "phase": "Queued",
        "queue": {"position": 3, "reason": "NoFreeGPU", "estimatedStart": "2026-01-31T12:00:00Z"},
        "summary": {"start": "0/10", "gpus": "1"},
    }
    await kube.apply(TRAINING_JOBS, "small", {"status": status}, namespace, manager="test", subresource="status")
    cells = _cells(await run(devcluster, "kubectl", "-n", namespace, "get", "tj", "small"))
    assert (cells["PROGRESS"], cells["GPUS"], cells["REASON"], cells["QUEUE"]) == ("0/10", "1", "NoFreeGPU", "3")
    wide = _cells(await run(devcluster, "kubectl", "-n", namespace, "get", "tj", "small", "-o", "wide"))
    assert wide["START"] == "2026-01-31T12:00:00Z"


async def test_the_columns_of_a_tenant_show_its_gpus(devcluster: Cluster, kube: KubeClient, namespace: str) -> None:
    spec = {"parent": "org", "guarantee": {"V100": 4}, "namespaces": [namespace]}
    await kube.create(TENANTS, {"metadata": {"name": namespace}, "spec": spec})
    summary = {"guaranteed": "4 V100", "used": "6 V100", "borrowed": "2 V100", "waiting": "1, 2 T4"}
    try:
        status = {"summary": summary, "namespaces": 1, "jobs": 3}
        await kube.apply(TENANTS, namespace, {"status": status}, manager="test", subresource="status")
        cells = _cells(await run(devcluster, "kubectl", "get", "tenant", namespace))
        del cells["AGE"]
        assert cells == {
            "NAME": namespace,
            "PARENT": "org",
            "GUARANTEED": "4 V100",
            "USED": "6 V100",
            "BORROWED": "2 V100",
            "WAITING": "1, 2 T4",
        }
    finally:
        await kube.delete(TENANTS, namespace)


async def test_a_tenant_s_gpus_are_explained(devcluster: Cluster) -> None:
    for field, words in {
        "guarantee": "GPUs that the tenant gets when its jobs want them",
        "limit": "may use at most",
        "borrowing": "beyond its guarantee at most",
        "lending": "GPUs of its guarantee that others may use",
        "parent": "Name of the Tenant that this one is part of",
    }.items():
        text = " ".join((await run(devcluster, "kubectl", "explain", f"tenant.spec.{field}")).split())
        assert words in text


@pytest.mark.parametrize("part", ["queue", "problem"])
async def test_the_reason_is_that_of_the_queue_or_of_the_problem(
    devcluster: Cluster, kube: KubeClient, namespace: str, part: str
) -> None:
    await kube.create(TRAINING_JOBS, samples.SMALL_JOB, namespace)
    place = {"position": 1} if part == "queue" else {}
    status = {part: {"reason": f"From{part}", "message": "in words", **place}}
    await kube.apply(TRAINING_JOBS, "small", {"status": status}, namespace, manager="test", subresource="status")
    cells = _cells(await run(devcluster, "kubectl", "-n", namespace, "get", "tj", "small", "-o", "wide"))
    assert cells["REASON"] == f"From{part}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_each_kind_is_explained_down_to_its_fields(devcluster: Cluster, kind: CustomResource) -> None:
    text = " ".join((await run(devcluster, "kubectl", "explain", kind.plural)).split())
    assert kind.description in text
    recursive = await run(devcluster, "kubectl", "explain", f"{kind.plural}.spec", "--recursive")
    for field in kind.spec.model_fields.values():
        assert str(field.alias) in recursive


async def test_a_deep_field_is_explained(devcluster: Cluster) -> None:
    text = await run(devcluster, "kubectl", "explain", "tj.spec.profile.matrices.cpuMillis")
    assert "CPU axis in milli-CPU, ascending." in text


async def test_training_jobs_are_among_all(devcluster: Cluster, kube: KubeClient, namespace: str) -> None:
    await kube.create(TRAINING_JOBS, samples.SMALL_JOB, namespace)
    listed = await run(devcluster, "kubectl", "-n", namespace, "get", "all", "-o", "name")
    assert "trainingjob.kube-synergy.dev/small" in listed.split()


async def test_every_kind_has_its_short_name_and_the_common_category(devcluster: Cluster) -> None:
    listed = await run(devcluster, "kubectl", "api-resources", "--api-group=kube-synergy.dev", "-o", "wide")
    rows = {line.split()[0]: line for line in listed.splitlines()[1:]}
    for kind in KINDS:
        assert kind.short_name in rows[kind.plural].split()
        assert "kube-synergy" in rows[kind.plural].split()[-1].split(",")


async def test_a_matrix_with_a_nan_does_not_leave_kubectl(devcluster: Cluster, namespace: str) -> None:
    job = samples.changed(samples.FULL_JOB, "spec.profile.matrices.0.stepsPerSecond.0.0", math.nan)
    text = yaml.safe_dump({"apiVersion": API_VERSION, "kind": "TrainingJob", **job})
    assert ".nan" in text
    code, _, errors = await attempt(devcluster, "kubectl", "-n", namespace, "apply", "-f", "-", text_in=text)
    assert code != 0
    assert "NaN" in errors
