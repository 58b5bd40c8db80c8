"""A person with the `edit` role in one namespace and kubectl, and nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.on_cluster.service_account import with_token
from support.waiting import eventually
from synergy_kube import KubeClient, Resource

Json = dict[str, Any]
ROUND_SECONDS = 5
"""Of the SchedulingPolicy under attack."""
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", namespaced=True)


@dataclass(frozen=True)
class Outcome:
    """What a kubectl command came to."""

    code: int
    output: str
    errors: str

    @property
    def forbidden(self) -> bool:
        """Whether the API server refused it for want of rights."""
        return self.code != 0 and "orbidden" in self.errors

    def document(self) -> Json:
        """The output of `-o json`."""
        assert self.code == 0, self.errors
        found: Json = json.loads(self.output)
        return found


@dataclass(frozen=True)
class Attacker:
    """One such person."""

    program: Path
    kubeconfig: Path
    namespace: str

    async def kubectl(self, *arguments: str, text_in: str = "", namespace: str = "") -> Outcome:
        """Run kubectl in the own namespace, or try another."""
        process = await asyncio.create_subprocess_exec(
            self.program,
            f"--kubeconfig={self.kubeconfig}",
            f"--namespace={namespace or self.namespace}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate(text_in.encode())
        return Outcome(process.returncode or 0, output.decode(), errors.decode())

    async def submit(self, *jobs: Json) -> Outcome:
        """Create TrainingJobs, all with one command."""
        return await self.kubectl(
            "create", "-f", "-", text_in=json.dumps({"kind": "List", "apiVersion": "v1", "items": jobs})
        )

    async def job(self, name: str) -> Json:
        """One of the own jobs as it is."""
        return (await self.kubectl("get", "trainingjob", name, "-o", "json")).document()

    async def told(self, name: str, where: str, *, seconds: float = 30) -> Json:
        """A part of the own job's status once it is there."""

        async def there() -> Json | None:
            found: Json | None = ((await self.job(name)).get("status") or {}).get(where)
            return found

        return await eventually(there, seconds=seconds, what=f"{name} to have status.{where}", every=0.2)


@asynccontextmanager
async def attacker_in(
    kube: KubeClient, administrator: Path, program: Path, namespace: str, folder: Path
) -> AsyncIterator[Attacker]:
    """Somebody with a new account of the namespace, and `edit` there."""
    name = "mallory"
    await kube.create(_ACCOUNTS, {"metadata": {"name": name}}, namespace)
    role = {"apiGroup": _BINDINGS.group, "kind": "ClusterRole", "name": "edit"}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    await kube.create(_BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}, namespace)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = (await kube.create_subresource(_ACCOUNTS, name, "token", request, namespace))["status"]["token"]
    file = with_token(administrator, token, folder / f"{namespace}.kubeconfig")
    attacker = Attacker(program, file, namespace)

    async def may_submit() -> bool:
        return (await attacker.kubectl("auth", "can-i", "create", "trainingjobs.kube-synergy.dev")).code == 0

    await eventually(may_submit, seconds=60, what="the edit role to have TrainingJobs")
    yield attacker


def manifest(name: str, **spec: Any) -> Json:
    """A TrainingJob of one GPU on the fake nodes, which runs until it is deleted."""
    container = {"name": "train", "image": "example/train:1", "command": ["train"]}
    pod = {"containers": [container], "nodeSelector": {"type": "kwok"}, "terminationGracePeriodSeconds": 0}
    full = {"gpus": 1, "steps": 1000, "profile": {"mode": "Skip"}, "template": {"spec": pod}, **spec}
    return {"apiVersion": "kube-synergy.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": full}
