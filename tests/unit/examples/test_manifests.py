"""The example manifests are valid, start scripts that are there, and pass restricted pod security."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from support.job.example import EXAMPLES
from synergy_api.resources.training_job import TrainingJobSpec

MANIFESTS = sorted((EXAMPLES / "manifests").glob("*.yaml"))


def documents(file: Path) -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in yaml.safe_load_all(file.read_text())}


def test_there_is_a_manifest_for_each_script() -> None:
    assert [file.name for file in MANIFESTS] == [
        "cached-images.yaml",
        "cpu-hungry.yaml",
        "gpu-bound.yaml",
        "torch-ddp.yaml",
        "two-node.yaml",
    ]


@pytest.fixture(params=MANIFESTS, ids=lambda file: file.stem)
def manifest(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    return documents(request.param)


def test_the_job_is_valid(manifest: dict[str, dict[str, Any]]) -> None:
    spec = TrainingJobSpec.model_validate(manifest["TrainingJob"]["spec"])
    assert spec.preemption == "Checkpoint"
    assert spec.gpus % (spec.gpus_per_worker or spec.gpus) == 0


def test_checkpoints_are_kept_on_the_claim(manifest: dict[str, dict[str, Any]]) -> None:
    pod = manifest["TrainingJob"]["spec"]["template"]["spec"]
    claim = manifest["PersistentVolumeClaim"]["metadata"]["name"]
    assert pod["volumes"] == [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": claim}}]
    mount = pod["containers"][0]["volumeMounts"][0]
    args = pod["containers"][0]["args"]
    assert args[args.index("--checkpoint") + 1] == mount["mountPath"]


def test_the_pod_is_restricted(manifest: dict[str, dict[str, Any]]) -> None:
    """What the API server's restricted pod security asks of a pod and of each container."""
    pod = manifest["TrainingJob"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
