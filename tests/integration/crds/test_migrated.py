"""What `kubectl synergy migrate` makes of the examples is taken by a real API server as it is printed."""

import asyncio
import sys
from pathlib import Path

import pytest
import yaml

from support.programs import run
from synergy_devcluster import Cluster
from synergy_kube import KubeClient
from synergy_kube.resources import TENANTS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("custom_resources")]


@pytest.mark.parametrize("name", ["kueue", "volcano", "kai"])
async def test_the_tenants_of_each_example_apply(
    devcluster: Cluster, kube: KubeClient, repository: Path, name: str
) -> None:
    command = [str(repository / "examples" / "moving" / f"{name}.yaml"), "--gpu-type", "A100"]
    program = Path(sys.executable).with_name("kube-synergy")
    process = await asyncio.create_subprocess_exec(
        program, "migrate", *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    text = (await process.communicate())[0].decode()
    assert process.returncode == 0
    wanted = [one for one in yaml.safe_load_all(text) if one]
    try:
        await run(devcluster, "kubectl", "apply", "-f", "-", text_in=text)
        for tenant in wanted:
            found = (await kube.get(TENANTS, tenant["metadata"]["name"]))["spec"]
            assert tenant["spec"].items() <= found.items()
    finally:
        for tenant in wanted:
            await kube.delete(TENANTS, tenant["metadata"]["name"])
