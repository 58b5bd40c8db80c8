"""Every right that the chart gives is one that the components used in the tests of this folder.

Read from the API server's audit log; this file is the last one to run. The certificate Job has a test of its own, which
takes its rights away one by one: `tests/integration/helm/test_certificates.py`.
"""

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from support.programs import run
from synergy_cli.product import NAMESPACE
from synergy_devcluster import Cluster

pytestmark = pytest.mark.e2e

Right = tuple[str, str, str]
"""Account, resource with its subresource, verb."""
ACCOUNTS = {
    "kube-synergy-operator": "ClusterRole",
    "kube-synergy-extender": "ClusterRole",
    "kube-synergy-extender-leader": "Role",
    "kube-synergy-scheduler-leader": "Role",
}


def _account(role: str) -> str:
    return role.removesuffix("-leader")


def _given(rendered: str) -> set[Right]:
    rights = set()
    for item in yaml.safe_load_all(rendered):
        if item and item["kind"] in ("Role", "ClusterRole") and item["metadata"]["name"] in ACCOUNTS:
            for rule in item["rules"]:
                rights |= {
                    (_account(item["metadata"]["name"]), resource, verb)
                    for resource in rule["resources"]
                    for verb in rule["verbs"]
                }
    return rights


@dataclass(frozen=True)
class Requests:
    """What this product's accounts asked of the API server: allowed and answered (with its status), and refused."""

    allowed: Set[tuple[Right, int]]
    refused: Sequence[Right]


def _requests(cluster: Cluster) -> Requests:
    """From the audit log. What a pod is refused while the bindings of its account are away does not count: a removal
    takes the rights before the pods."""
    prefix = f"system:serviceaccount:{NAMESPACE}:"
    entries = [json.loads(line) for line in cluster.paths.audit_log.read_text().splitlines()]
    allowed: set[tuple[Right, int]] = set()
    refused: list[Right] = []
    away: set[str] = set()
    for entry in sorted(entries, key=lambda entry: str(entry["requestReceivedTimestamp"])):
        name, reference = entry["user"]["username"], entry.get("objectRef", {})
        if not name.startswith(prefix):
            if reference.get("resource", "").endswith("rolebindings") and "name" in reference:
                (away.add if entry["verb"] == "delete" else away.discard)(reference["name"])
            continue
        if not reference:
            continue
        account = name.removeprefix(prefix).removesuffix("-install")
        resource = "/".join(part for part in (reference["resource"], reference.get("subresource")) if part)
        right = (account, resource, entry["verb"])
        if entry.get("annotations", {}).get("authorization.k8s.io/decision") != "forbid":
            allowed.add((right, (entry.get("responseStatus") or {}).get("code", 0)))
        elif not any(binding.startswith(account) for binding in away):
            refused.append(right)
    return Requests(allowed, refused)


async def test_every_right_was_used_and_none_was_missing(
    devcluster: Cluster, repository: Path, *, others_ran: bool
) -> None:
    if not others_ran:
        pytest.skip("needs the other tests of this folder to have run")
    chart = str(repository / "helm" / "kube-synergy")
    given = _given(await run(devcluster, "helm", "template", "x", chart, "--kube-version=1.36"))
    requests = _requests(devcluster)
    used = {right for right, _ in requests.allowed}
    # an apply that made the object needs both rights
    used |= {(account, resource, "create") for (account, resource, verb), code in requests.allowed
             if (verb, code) == ("patch", 201)}  # fmt: skip
    assert requests.refused == []
    assert given - used == set()
