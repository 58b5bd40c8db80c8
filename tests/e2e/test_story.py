"""The main job: every phase, profiling, tuning, preemption at a round's end, resuming, finishing."""

import asyncio
from pathlib import Path

import pytest

import synergy_devcluster
from support.on_cluster.namespaces import alone_on
from synergy_cli.demo import story
from synergy_cli.demo.asking import ask
from synergy_cli.demo.checks import shortcomings
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, NAMESPACES

pytestmark = pytest.mark.e2e


@pytest.mark.timeout(900)
async def test_the_demo_shows_all_it_is_to_show(
    kube: KubeClient, product: None, repository: Path, devcluster: synergy_devcluster.Cluster
) -> None:
    await alone_on(kube, REAL_NODE)
    told: list[str] = []
    begun = asyncio.get_running_loop().time()

    def tell(name: str, text: str) -> None:
        told.append(f"{asyncio.get_running_loop().time() - begun:6.1f} {name}: {text}")

    answers: dict[str, list[str]] = {}

    async def explain(name: str) -> None:
        for command in ("why", "when"):
            answers[command] = await ask(devcluster.kubeconfig, command, name, story.NAMESPACE)
            tell(name, "\n".join(answers[command]))

    documents = story.documents(repository / "examples" / "demo")
    try:
        seen = await story.run(kube, documents, seconds=800, tell=tell, explain=explain)
    finally:
        print("\n".join(told))
        await kube.delete(GPU_POOLS, "a100")
        await kube.delete(NAMESPACES, story.NAMESPACE)
    assert shortcomings(seen) == []
    assert "Queued" in answers["why"][1]
    assert len(answers["when"]) > 1
    assert not [line for line in answers["when"] if line.startswith("Error")]
    measured = [one.last["status"]["progress"] for one in seen.observations.values() if one.yields]
    assert all(0 <= one["saveSeconds"] < one["resumeSeconds"] for one in measured), "what a preemption cost"
