"""The demo on kind, all but Docker itself: kind's own reading of its configuration, and its steps on a real cluster."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from support.on_cluster.jobs import logs, reaches, restricted_template, submit
from support.on_cluster.kind_stand_in import accepted_by_kind, put_on_path
from support.waiting import eventually
from synergy_cli.demo.kind import LABEL_COUNT, KindCluster
from synergy_cli.product import NAMESPACE, install
from synergy_devcluster import BadInputError, Cluster, Paths
from synergy_devcluster.gpu_plugin.devices import gpu_uuids
from synergy_kube import KubeClient
from synergy_kube.errors import NotFound
from synergy_kube.resources import DAEMON_SETS, DEPLOYMENTS, NODES, PODS

pytestmark = pytest.mark.e2e

PLUGIN = "gpu-plugin"
REAL = "ksdev-real"


@pytest_asyncio.fixture
async def without_gpus(devcluster: Cluster, kube: KubeClient, product: None) -> AsyncIterator[None]:
    """The devcluster's own plugin is away, as on a node of kind; afterwards it and the devcluster's chart are back."""

    async def has(count: str) -> bool:
        return bool((await kube.get(NODES, REAL))["status"]["allocatable"]["nvidia.com/gpu"] == count)

    async def label(count: str) -> None:
        await kube.merge_patch(NODES, REAL, {"metadata": {"labels": {LABEL_COUNT: count}}})

    devcluster.component(PLUGIN).stop()
    await eventually(lambda: has("0"), seconds=60, what="the devcluster's own plugin to be gone")
    labelled = (await kube.get(NODES, REAL))["metadata"]["labels"][LABEL_COUNT]
    await label("2")  # as kind-config.yaml labels its worker
    yield
    await label(labelled)
    with suppress(NotFound):
        await kube.delete(DAEMON_SETS, "fake-gpus", "kube-system")
    devcluster.component(PLUGIN).start()
    await eventually(lambda: has("2"), seconds=60, what="the devcluster's own plugin to be back")
    install(devcluster, report=print)


def test_kind_itself_takes_the_configuration_and_would_make_its_two_nodes(repository: Path, tmp_path: Path) -> None:
    nodes = accepted_by_kind(repository / "kind-config.yaml", tmp_path)
    assert nodes == ["kube-synergy-control-plane", "kube-synergy-worker"]


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("role: worker", "role: werker", '"werker" is not a valid node role'),
        ("labels:", "lables:", "field lables not found"),
        ("v1alpha4", "v1alpha9", "unknown apiVersion"),
    ],
)
def test_kind_refuses_a_configuration_with_a_mistake(
    repository: Path, tmp_path: Path, right: str, wrong: str, words: str
) -> None:
    text = (repository / "kind-config.yaml").read_text()
    mistaken = tmp_path / "mistaken.yaml"
    mistaken.write_text(text.replace(right, wrong))
    with pytest.raises(BadInputError, match=words):
        accepted_by_kind(mistaken, tmp_path)


async def test_the_configuration_labels_its_worker_as_a_devcluster_labels_its_node(
    repository: Path, kube: KubeClient
) -> None:
    labels = (await kube.get(NODES, REAL))["metadata"]["labels"]
    has = {key: value for key, value in labels.items() if key.startswith("nvidia.com/")}
    nodes = yaml.safe_load((repository / "kind-config.yaml").read_text())["nodes"]
    (worker,) = [node["labels"] for node in nodes if node["role"] == "worker"]
    # how many GPUs there are is not the same: the DaemonSet offers two
    assert {**worker, LABEL_COUNT: has[LABEL_COUNT]} == has
    assert worker[LABEL_COUNT] == "2"


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("without_gpus")
async def test_every_step_of_the_demo_on_kind_works_and_jobs_get_the_daemon_sets_gpus(
    devcluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in put_on_path(tmp_path).items():
        monkeypatch.setenv(name, value)
    place, told = KindCluster(paths=replace(Paths.of(), cache=tmp_path)), list[str]()
    place.check()

    await asyncio.to_thread(place.start, told.append)

    assert place.mine
    assert told[0] == "kind create cluster --config kind-config.yaml"
    deployment = await kube.get(DEPLOYMENTS, "kube-synergy-scheduler", NAMESPACE)
    (scheduler,) = deployment["spec"]["template"]["spec"]["containers"]
    assert scheduler["image"] == f"registry.k8s.io/kube-scheduler:{await kube.server_version()}"
    plugins = (await kube.list(PODS, "kube-system", field_selector=f"spec.nodeName={REAL}"))["items"]
    assert [pod["status"]["phase"] for pod in plugins] == ["Running"]

    show = ["python3", "-c", "import os; print('mine:', os.environ['NVIDIA_VISIBLE_DEVICES'])"]
    template = restricted_template(show)
    await submit(kube, namespace, "both", gpus=2, steps=1, profile={"mode": "Skip"}, template=template)
    await reaches(kube, namespace, "both", "Succeeded", seconds=120)
    assert f"mine: {','.join(gpu_uuids(REAL, 2))}" in logs(devcluster, namespace, "both-1-0")

    place.end(told.append)
    assert told[-1] == "kind delete cluster --name kube-synergy"
