"""Every right that the chart gives, but for a named few, is one that the components used in the tests of this folder.

Read from the API server's audit log; this file is the last one to run. The certificate Job has a test of its own, which
takes its rights away one by one: `tests/integration/helm/test_certificates.py`.
"""

import json
from collections.abc import Iterator
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


RARELY = {
    ("kube-synergy-operator", "pods", "get"),
    ("kube-synergy-operator", "pods", "delete"),
    ("kube-synergy-operator", "jobs", "get"),
    ("kube-synergy-operator", "jobs", "delete"),
    ("kube-synergy-operator", "events", "list"),
    ("kube-synergy-operator", "trainingjobs", "delete"),
    ("kube-synergy-operator", "throughputprofiles", "patch"),
    ("kube-synergy-operator", "throughputprofiles/status", "patch"),
    ("kube-synergy-extender", "pods", "get"),
    ("kube-synergy-extender", "trainingjobs", "get"),
    ("kube-synergy-extender", "events", "create"),
    ("kube-synergy-extender", "gpupools/status", "patch"),
    ("kube-synergy-extender", "subjectaccessreviews", "create"),
}
"""What these tests need not come to: names that are taken, a watch that is late, a job's end by its TTL, questions."""


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


def _entries(cluster: Cluster) -> Iterator[tuple[str, str, str, int]]:
    """Account, resource, verb and the answer's status, of every request of this product's accounts."""
    prefix = f"system:serviceaccount:{NAMESPACE}:"
    for line in cluster.paths.audit_log.read_text().splitlines():
        entry = json.loads(line)
        name = entry["user"]["username"]
        if name.startswith(prefix) and "objectRef" in entry:
            reference = entry["objectRef"]
            resource = "/".join(part for part in (reference["resource"], reference.get("subresource")) if part)
            code = (entry.get("responseStatus") or {}).get("code", 0)
            if entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid":
                code = 403
            elif code == 403:  # allowed, and refused for another reason: a namespace that is being deleted
                code = 409
            yield name.removeprefix(prefix).removesuffix("-install"), resource, entry["verb"], code


async def test_every_right_but_the_rare_ones_was_used_and_none_was_missing(
    request: pytest.FixtureRequest, devcluster: Cluster, repository: Path
) -> None:
    folder = Path(__file__).parent
    ran = {Path(str(item.path)).name for item in request.session.items if Path(str(item.path)).parent == folder}
    if ran != {file.name for file in folder.glob("test_*.py")}:
        pytest.skip("needs the other tests of this folder to have run")
    chart = str(repository / "helm" / "kube-synergy")
    given = _given(await run(devcluster, "helm", "template", "x", chart, "--kube-version=1.36"))
    used, refused = set(), []
    for account, resource, verb, code in _entries(devcluster):
        if code == 403 and resource != "leases":  # a removal takes the roles before the pods
            refused.append((account, resource, verb))
        used.add((account, resource, verb))
        if (verb, code) == ("patch", 201):  # an apply that made the object needs both rights
            used.add((account, resource, "create"))
    assert refused == []
    assert given - used - RARELY == set()
