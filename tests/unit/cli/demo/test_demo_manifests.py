"""The demo's manifests are what the models say they must be."""

from pathlib import Path

import pytest

from synergy_api.resources.gpu_pool import GPUPoolSpec
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_cli.demo import story
from synergy_cli.demo.checks import ENDS

MODELS = {"TrainingJob": TrainingJobSpec, "GPUPool": GPUPoolSpec, "SchedulingPolicy": SchedulingPolicySpec}


def test_every_custom_resource_of_the_demo_is_valid(repository: Path) -> None:
    found = story.documents(repository / "examples" / "demo")
    checked = [MODELS[item["kind"]].model_validate(item["spec"]) for item in found if item["kind"] in MODELS]
    assert len(checked) == 9


def test_the_jobs_that_the_story_speaks_of_are_there(repository: Path) -> None:
    found = story.documents(repository / "examples" / "demo")
    names = {item["metadata"]["name"] for item in found if item["kind"] == "TrainingJob"}
    assert {story.SENSITIVE, story.PAUSED, *ENDS} < names


def test_a_folder_without_manifests_is_named(tmp_path: Path) -> None:
    with pytest.raises(story.DemoError, match=f"no manifests in {tmp_path}"):
        story.documents(tmp_path)
