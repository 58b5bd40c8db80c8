"""The chart's life on a cluster: what an upgrade, a rollback and a removal keep, while a job trains on."""

import asyncio
import base64
import json
import os
import shutil
import signal
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
import yaml

from support.on_cluster.jobs import reaches, restricted_template, submit
from support.programs import run
from support.waiting import eventually
from synergy_api.names import LABEL_JOB, LABEL_RANK, LABEL_ROLE, LABEL_RUN, ROLE_WORKER
from synergy_cli.product import NAMESPACE, RELEASE, install
from synergy_devcluster import Cluster
from synergy_kube import KubeClient
from synergy_kube.errors import NotFound
from synergy_kube.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    PODS,
    SCHEDULING_POLICIES,
    SECRETS,
    TRAINING_JOBS,
)

pytestmark = pytest.mark.e2e

SECRET_NAMES = ("kube-synergy-ca", "kube-synergy-extender-tls", "kube-synergy-scheduler-tls")
DEPLOYMENT_NAMES = ("kube-synergy-operator", "kube-synergy-extender", "kube-synergy-scheduler")
EXTENDER_PODS = "app.kubernetes.io/component=extender"
COMPONENTS = "app.kubernetes.io/component in (operator, extender, scheduler)"
TRAIN = ["python3", "/examples/cpu_hungry.py", "--checkpoint", "/tmp/checkpoint"]
TRAIN += ["--cpu-ms-per-step", "1", "--device-ms", "50"]
ON_THE_REAL_NODE = {"nodeSelector": {"kubernetes.io/hostname": "ksdev-real"}}


class Training:
    """A job that trains as long as these tests run. What is asked of it holds for one and the same process."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._first: tuple[Any, ...] | None = None

    async def start(self) -> None:
        template = restricted_template(TRAIN, **ON_THE_REAL_NODE)
        await submit(
            self._kube, self._namespace, "long", gpus=1, steps=10**6, profile={"mode": "Skip"}, template=template
        )
        await reaches(self._kube, self._namespace, "long", "Running", seconds=120)
        self._first = await self._process()

    async def still_the_same_process(self) -> None:
        """Its pod was neither replaced nor restarted."""
        assert await self._process() == self._first

    async def reports_on(self) -> None:
        """It trains, and the extender goes on renewing its lease: progress is written only by way of the extender."""
        await self.still_the_same_process()
        before = await self._progress()

        async def more() -> bool:
            return await self._progress() > before

        await eventually(more, seconds=60, what=f"the job's progress beyond {before} steps", every=0.2)
        await self.still_the_same_process()

    async def _progress(self) -> int:
        job = await self._kube.get(TRAINING_JOBS, "long", self._namespace)
        return int((job["status"].get("progress") or {}).get("steps", 0))

    async def _process(self) -> tuple[Any, ...]:
        (pod,) = (await self._kube.list(PODS, self._namespace, label_selector="kube-synergy.dev/job=long"))["items"]
        assert pod["status"]["phase"] == "Running"
        (container,) = pod["status"]["containerStatuses"]
        return pod["metadata"]["uid"], container["restartCount"], container["containerID"]


@pytest_asyncio.fixture(scope="module")
async def training(kube: KubeClient, product: None) -> AsyncIterator[Training]:
    """One job for all tests here."""
    namespace = "test-chart"
    await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
    job = Training(kube, namespace)
    await job.start()
    yield job
    await kube.delete(NAMESPACES, namespace)


async def _secrets(kube: KubeClient) -> list[Any]:
    return [(await kube.get(SECRETS, name, NAMESPACE))["data"] for name in SECRET_NAMES]


async def _helm(devcluster: Cluster, *arguments: str) -> str:
    return await run(devcluster, "helm", *arguments, f"--namespace={NAMESPACE}")


NEWS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-synergy-news}
data: {word: "{{ .Values.news.word }}"}
"""


@pytest.fixture
def next_version(repository: Path, tmp_path: Path) -> Path:
    """The chart as of the version after this one: whatever carries a version changes with it, and it has a section of
    values that this one knows nothing of."""
    chart = tmp_path / "kube-synergy"
    shutil.copytree(repository / "helm" / "kube-synergy", chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "99.0.0", "appVersion": "99.0.0"}))
    with (chart / "values.yaml").open("a") as values:
        values.write("\nnews: {word: new}\n")
    schema = json.loads((chart / "values.schema.json").read_text())
    schema["properties"]["news"] = {"type": "object"}
    schema["required"].append("news")
    (chart / "values.schema.json").write_text(json.dumps(schema))
    (chart / "templates" / "news.yaml").write_text(NEWS)
    return chart


async def _upgrade(devcluster: Cluster, chart: Path, *how: str) -> None:
    await _helm(devcluster, "upgrade", RELEASE, str(chart), *how, "--wait", "--timeout=120s")


@pytest_asyncio.fixture
async def as_it_was(devcluster: Cluster, kube: KubeClient, product: None) -> AsyncIterator[None]:
    """After the test the chart and the default policy are as they were."""
    before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
    yield
    install(devcluster, report=print)
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": before})


async def test_all_components_run_and_have_elected_leaders(kube: KubeClient, product: None) -> None:
    for name in DEPLOYMENT_NAMES:
        status = (await kube.get(DEPLOYMENTS, name, NAMESPACE))["status"]
        assert status["readyReplicas"] == status["replicas"]
    for lease in ("kube-synergy-extender", "kube-synergy-scheduler"):
        assert (await kube.get(LEASES, lease, NAMESPACE))["spec"]["holderIdentity"]


async def test_no_component_restarted_or_logged_a_refusal_of_its_rights(
    devcluster: Cluster, kube: KubeClient, product: None
) -> None:
    pods = (await kube.list(PODS, NAMESPACE, label_selector=COMPONENTS))["items"]
    current = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    assert len(current) == 4
    for pod in current:
        name = pod["metadata"]["name"]
        assert [status["restartCount"] for status in pod["status"]["containerStatuses"]] == [0], name
        log = await run(devcluster, "kubectl", "logs", "-n", NAMESPACE, name)
        # in a namespace that goes, nobody may make anything
        refusals = [line for line in log.splitlines() if "forbidden" in line.lower() and "being terminated" not in line]
        assert not refusals, name


@asynccontextmanager
async def _extender(kube: KubeClient, port: int, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A replica of the extender, asked with kube-scheduler's own certificate."""
    secret = (await kube.get(SECRETS, "kube-synergy-scheduler-tls", NAMESPACE))["data"]
    for name, content in secret.items():
        (folder / name).write_bytes(base64.b64decode(content))
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    context.check_hostname = False  # the certificate is for the Service, this is the pod
    pod = await kube.get(PODS, (await _holder(kube)).split("_")[0], NAMESPACE)
    async with httpx.AsyncClient(base_url=f"https://{pod['status']['podIP']}:{port}", verify=context) as client:
        yield client


async def test_the_extender_asks_the_api_server_before_it_refuses_what_its_watches_do_not_know(
    devcluster: Cluster, kube: KubeClient, training: Training, tmp_path: Path
) -> None:
    labels = {LABEL_JOB: "nobody", LABEL_RUN: "1", LABEL_RANK: "0", LABEL_ROLE: ROLE_WORKER}
    pod = {"metadata": {"name": "nobody-1-0", "namespace": "test-chart", "uid": "none", "labels": labels}}
    names = {"PodName": "nobody-1-0", "PodNamespace": "test-chart", "PodUID": "none", "Node": "ksdev-real"}
    async with _extender(kube, 9443, tmp_path) as verbs:
        answer = (await verbs.post("/filter", json={"Pod": pod, "NodeNames": ["ksdev-real"]})).json()
        assert answer["NodeNames"] == []
        assert answer["FailedAndUnresolvableNodes"] == {"ksdev-real": "its TrainingJob does not exist"}
        assert "gone" in (await verbs.post("/bind", json=names)).json()["Error"]
    token = (await run(devcluster, "kubectl", "-n", "test-chart", "create", "token", "default")).strip()
    async with _extender(kube, 9444, tmp_path) as api:
        answer = await api.get("/v1/plan", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 403, "this account may not read TrainingJobs"


async def test_an_upgrade_to_the_next_version_and_a_rollback_keep_certificates_policy_and_the_running_job(
    devcluster: Cluster, kube: KubeClient, next_version: Path, as_it_was: None, training: Training
) -> None:
    certificates = await _secrets(kube)
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"roundSeconds": 4321}})

    with pytest.raises(AssertionError, match="missing property 'news'"):
        await _upgrade(devcluster, next_version, "--reuse-values")
    await _upgrade(devcluster, next_version, "--reset-then-reuse-values", "--set=podLabels.upgraded=yes")

    assert (await kube.get(CONFIG_MAPS, "kube-synergy-news", NAMESPACE))["data"] == {"word": "new"}
    extender = await kube.get(DEPLOYMENTS, "kube-synergy-extender", NAMESPACE)
    labels = extender["spec"]["template"]["metadata"]["labels"]
    assert (labels["upgraded"], labels["app.kubernetes.io/version"]) == ("yes", "99.0.0")
    assert extender["spec"]["template"]["spec"]["nodeSelector"] == ON_THE_REAL_NODE["nodeSelector"]
    assert await _secrets(kube) == certificates
    assert (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]["roundSeconds"] == 4321
    await training.reports_on()

    await _helm(devcluster, "rollback", RELEASE, "--wait", "--timeout=120s")

    extender = await kube.get(DEPLOYMENTS, "kube-synergy-extender", NAMESPACE)
    assert "upgraded" not in extender["spec"]["template"]["metadata"]["labels"]
    assert await _secrets(kube) == certificates
    assert (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]["roundSeconds"] == 4321
    await training.reports_on()


async def test_new_certificates_are_taken_up_and_the_leader_dies_and_nothing_stands_still(
    devcluster: Cluster, kube: KubeClient, training: Training
) -> None:
    authority, *before = await _secrets(kube)
    for name in SECRET_NAMES[1:]:
        await kube.delete(SECRETS, name, NAMESPACE)
    await run(
        devcluster,
        "kubectl",
        *("-n", NAMESPACE, "create", "job", "renew-now", "--from=cronjob/kube-synergy-certificates"),
    )
    await run(
        devcluster,
        "kubectl",
        *("-n", NAMESPACE, "wait", "--for=condition=complete", "job/renew-now", "--timeout=60s"),
    )
    same, *after = await _secrets(kube)
    assert same == authority
    assert [old["tls.crt"] for old in before] != [new["tls.crt"] for new in after]
    await run(devcluster, "kubectl", "-n", NAMESPACE, "delete", "job", "renew-now")
    await _kubelets_look_again(kube)

    async def all_show_it() -> bool:
        pods = (await kube.list(PODS, NAMESPACE, label_selector=EXTENDER_PODS))["items"]
        return [await _served(pod["status"]["podIP"]) for pod in pods] == [_certificate(after[0])] * 2

    await eventually(all_show_it, seconds=120, what="both replicas to show the new certificate", every=0.5)
    await training.reports_on()

    holder = await _holder(kube)
    _kill_processes_of(await kube.get(PODS, holder.split("_")[0], NAMESPACE))
    killed = time.monotonic()

    async def another_leads() -> bool:
        return await _holder(kube) not in ("", holder)

    await eventually(another_leads, seconds=60, what="another leader", every=0.1)
    print(f"lead handed over {time.monotonic() - killed:.1f} s after the leader was killed")
    await training.reports_on()
    # kube-scheduler reaches the extender over new connections, with its new certificate
    template = restricted_template(["true"], **ON_THE_REAL_NODE)
    await submit(kube, "test-chart", "short", gpus=1, steps=1, profile={"mode": "Skip"}, template=template)
    await reaches(kube, "test-chart", "short", "Succeeded", seconds=120)


async def _kubelets_look_again(kube: KubeClient) -> None:
    """A pod that changes is looked at at once, its Secrets included; else that may take a minute."""
    for pod in (await kube.list(PODS, NAMESPACE, label_selector=COMPONENTS))["items"]:
        note = {"metadata": {"annotations": {"looked-at": str(time.time())}}}
        await kube.merge_patch(PODS, pod["metadata"]["name"], note, NAMESPACE)


async def _served(address: str) -> bytes:
    """The certificate that the extender at this address shows."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection(address, 9444, ssl=context)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return certificate


def _certificate(secret: dict[str, str]) -> bytes:
    return ssl.PEM_cert_to_DER_cert(base64.b64decode(secret["tls.crt"]).decode())


async def _holder(kube: KubeClient) -> str:
    lease = await kube.get(LEASES, "kube-synergy-extender", NAMESPACE)
    return str(lease["spec"].get("holderIdentity") or "")


def _kill_processes_of(pod: dict[str, Any]) -> None:
    """SIGKILL to everything in the pod's containers, as when the kernel runs out of memory."""
    uid, killed = pod["metadata"]["uid"], 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            group = (process / "cgroup").read_text()
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if uid in group.replace("_", "-") and b"synergy_extender" in command:
            os.kill(int(process.name), signal.SIGKILL)
            killed += 1
    assert killed


async def test_a_removal_keeps_definitions_policy_and_the_running_job_and_a_new_install_takes_them_over(
    devcluster: Cluster, kube: KubeClient, as_it_was: None, training: Training
) -> None:
    certificates = await _secrets(kube)
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"roundSeconds": 4321}})

    await _helm(devcluster, "uninstall", RELEASE, "--wait", "--timeout=120s")

    with pytest.raises(NotFound):
        await kube.get(DEPLOYMENTS, "kube-synergy-operator", NAMESPACE)
    definition = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, "trainingjobs.kube-synergy.dev")
    assert "deletionTimestamp" not in definition["metadata"]
    assert (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]["roundSeconds"] == 4321

    async def nothing_is_left() -> bool:
        kinds = "all,cronjob,role,rolebinding,serviceaccount,networkpolicy"
        left = await run(devcluster, "kubectl", "-n", NAMESPACE, "get", kinds, "-o", "name")
        return left.split() == ["serviceaccount/default"]

    await eventually(nothing_is_left, seconds=60, what="the components to be gone", every=0.5)
    await training.still_the_same_process()

    install(devcluster, report=print)

    assert (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]["roundSeconds"] == 4321
    # the authority that the running job trusts is still there
    assert await _secrets(kube) == certificates
    await training.reports_on()
