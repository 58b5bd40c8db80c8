"""Which jobs count as identical, so that one measures for all."""

from typing import Any

import pytest

from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.profile.fingerprint import fingerprint


def _mark(container: dict[str, Any] | None = None, **pod: Any) -> str:
    train = {"name": "train", "image": "example/train:1", "command": ["python3", "/code/train.py"], **(container or {})}
    return fingerprint(
        TrainingJobSpec.model_validate({"gpus": 1, "steps": 10, "template": {"spec": {"containers": [train], **pod}}})
    )


def _code_of(config_map: str) -> dict[str, Any]:
    mounts = [{"name": "code", "mountPath": "/code"}]
    return {
        "container": {"volumeMounts": mounts},
        "volumes": [{"name": "code", "configMap": {"name": config_map}}],
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"container": {"workingDir": "/a"}}, {"container": {"workingDir": "/b"}}),
        (_code_of("mine"), _code_of("yours")),
        (
            {"initContainers": [{"name": "clone", "image": "git", "args": ["https://example.com/a"]}]},
            {"initContainers": [{"name": "clone", "image": "git", "args": ["https://example.com/b"]}]},
        ),
    ],
)
def test_jobs_whose_code_comes_from_elsewhere_are_not_identical(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert _mark(**one) == _mark(**one)
    assert _mark(**one) != _mark(**other)


def test_a_claim_for_data_and_checkpoints_makes_no_difference() -> None:
    def kept_in(claim: str) -> str:
        mounts = [{"name": "data", "mountPath": "/data"}]
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        return _mark({"volumeMounts": mounts}, volumes=volumes)

    assert kept_in("a") == kept_in("b")


def test_a_job_that_is_to_be_measured_longer_is_measured_anew() -> None:
    spec = {"gpus": 1, "steps": 10, "template": {"spec": {"containers": [{"name": "train", "image": "example/a:1"}]}}}
    longer = TrainingJobSpec.model_validate({**spec, "profile": {"steps": 500}})
    assert fingerprint(longer) != fingerprint(TrainingJobSpec.model_validate(spec))


def _submitted(config_map: str, script: str, volume: str = "script") -> str:
    """A job as `kubectl synergy submit` makes it, with the hash of its script."""
    train = {"name": "train", "image": "example/train:1", "command": ["python3", "/kube-synergy/script/train.py"]}
    train["volumeMounts"] = [{"name": volume, "mountPath": "/kube-synergy/script"}]
    template = {
        "metadata": {"annotations": {"kube-synergy.dev/script": script}},
        "spec": {"containers": [train], "volumes": [{"name": volume, "configMap": {"name": config_map}}]},
    }
    return fingerprint(TrainingJobSpec.model_validate({"gpus": 1, "steps": 10, "template": template}))


def test_submitted_scripts_are_identical_by_their_content_whatever_their_config_maps_are_called() -> None:
    assert _submitted("train-1a2b3-script", "c0ffee") == _submitted("train-4d5e6-script", "c0ffee")
    assert _submitted("train-1a2b3-script", "c0ffee") != _submitted("train-1a2b3-script", "decade")


def test_a_config_map_of_another_volume_still_counts_by_its_name() -> None:
    assert _submitted("mine", "c0ffee", "code") != _submitted("yours", "c0ffee", "code")


def test_a_script_s_volume_that_is_no_config_map_is_taken_as_it_is() -> None:
    container = {"name": "train", "image": "example/train:1", "command": ["python3"]}
    odd = {"containers": [container], "volumes": [{"name": "script", "configMap": 1}]}
    template = {"metadata": {"annotations": {"kube-synergy.dev/script": "c0ffee"}}, "spec": odd}
    assert fingerprint(TrainingJobSpec.model_validate({"gpus": 1, "steps": 10, "template": template}))
