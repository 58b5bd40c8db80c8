"""A namespace whose jobs the whole product runs on fake nodes, and what an administrator asks about them."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import synergy_devcluster
from support.extender.world import TOLERATIONS
from support.operator.stage import Json, Stage, template
from support.waiting import eventually
from synergy_kube.resources import SCHEDULING_POLICIES


class Team(Stage):
    """Jobs that run until they are told to leave, and then end at once."""

    async def wants(self, name: str, gpus: int, gpu_type: str, **spec: Any) -> None:
        """Submit a job."""
        given = {"gpus": gpus, "preemption": "Signal", "gpuTypes": [gpu_type], "template": endless(), **spec}
        await self.submit(name, **given)

    async def status(self, name: str) -> Json:
        """The job's status now."""
        found: Json = (await self.job(name)).get("status") or {}
        return found

    async def planned_round(self) -> int:
        """The newest round that the policy's status names."""
        policy = await self.kube.get(SCHEDULING_POLICIES, "default")
        return int(policy["status"]["inForce"].get("round", 0))

    async def runs(self, name: str, seconds: float = 60) -> Json:
        """The job's status once its workers run."""
        status: Json = {}

        async def there() -> Json | None:
            status.clear()
            status.update(await self.status(name))
            running = status.get("phase") == "Running" and (status.get("service") or {}).get("runningSince")
            return status if running else None

        try:
            return await eventually(there, seconds=seconds, what=f"{self.namespace}/{name} to run", every=0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}; its status: {status}") from None


def endless() -> Json:
    """A template for fake nodes whose pods run for an hour."""
    made = template(run_seconds="3600")
    made["spec"] |= {"tolerations": TOLERATIONS, "terminationGracePeriodSeconds": 0}
    return made


async def ask(cluster: synergy_devcluster.Cluster, *words: str) -> str:
    """What `kubectl synergy` answers an administrator."""
    program = Path(sys.executable).with_name("kube-synergy")
    process = await asyncio.create_subprocess_exec(
        program, *words, "--kubeconfig", cluster.kubeconfig, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()
