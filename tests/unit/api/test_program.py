"""Which jobs train the same model."""

from typing import Any

import pytest

from synergy_api.program import model


def _model(*command: str, gpus: int = 1, batch_size: int | None = None, **container: Any) -> str:
    train = {"name": "train", "image": "example/train:1", "command": list(command), **container}
    return model({"spec": {"containers": [train]}}, gpus=gpus, batch_size=batch_size)


@pytest.mark.parametrize(
    ("gpus", "batch_size", "told"), [(1, 64, "64"), (1, 128, "128"), (4, 512, "128"), (4, 512, "512")]
)
def test_the_batch_and_the_gpus_make_no_other_model(gpus: int, batch_size: int, told: str) -> None:
    one = _model("train.py", "--batch-size=16", "--epochs", "90", batch_size=16)
    assert _model("train.py", f"--batch-size={told}", "--epochs", "90", gpus=gpus, batch_size=batch_size) == one


@pytest.mark.parametrize(
    "other",
    [
        {"command": ("train.py", "--batch-size", "64", "--depth", "34")},
        {"command": ("train.py", "--batch-size", "64", "--depth", "50"), "image": "example/train:2"},
        {"command": ("train.py", "--batch-size", "164", "--depth", "50")},
        {"command": ("train.py", "--batch-size", "0.64", "--depth", "50")},
    ],
)
def test_another_image_or_another_number_is_another_model(other: dict[str, Any]) -> None:
    one = _model("train.py", "--batch-size", "64", "--depth", "50", batch_size=64)
    assert _model(*other.pop("command"), batch_size=64, **other) != one


def test_without_a_batch_size_every_number_counts() -> None:
    assert _model("train.py", "64") == _model("train.py", "64", gpus=8)
    assert _model("train.py", "64") != _model("train.py", "128")


@pytest.mark.parametrize(
    "template",
    [{}, {"spec": {}}, {"spec": {"containers": []}}, {"spec": {"containers": ["train"]}}, {"spec": {"containers": 3}}],
)
def test_a_template_that_is_no_pods_has_no_model(template: dict[str, Any]) -> None:
    assert model(template, gpus=1, batch_size=None) == ""
