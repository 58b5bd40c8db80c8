"""Somebody with the right to edit pods changes labels and annotations of worker pods."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, connected
from support.operator.world import World
from synergy_api import names
from synergy_api.quantity import LARGEST
from synergy_kube.reflector import Change
from synergy_operator.edge.controller import Controller
from synergy_operator.edge.environment import Environment
from synergy_operator.edge.trimming import VIEW, trimmed
from synergy_operator.views.annotations import ANNOTATION_UNGATED_AT
from synergy_operator.views.metadata import number_of
from synergy_operator.views.pod import read_pod

Json = dict[str, Any]
KEY = ("team", "job-1-0")


def _pod() -> Json:
    world = World(profile={"mode": "Skip"})
    world.settle()
    world.grant()
    world.run_all()
    return world.pods["job-1-0"]


def _edited(pod: Json, **metadata: Json) -> Json:
    version = str(int(pod["metadata"]["resourceVersion"]) + 1)
    merged = {field: {**pod["metadata"].get(field, {}), **value} for field, value in metadata.items()}
    return {**pod, "metadata": {**pod["metadata"], **merged, "resourceVersion": version}}


@pytest.mark.parametrize("text", ["x", "-1", "9" * 30, "cpu", "memory", "2026-01-31", ""])
@pytest.mark.parametrize("name", [ANNOTATION_UNGATED_AT, names.ANNOTATION_RESOURCE, names.ANNOTATION_DEVICES])
def test_a_pod_can_be_read_whatever_its_annotations_say(name: str, text: str) -> None:
    pod = _pod()
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "500m"
    assert VIEW in trimmed(read_pod)(_edited(pod, annotations={name: text}))


@pytest.mark.parametrize(
    ("text", "number"),
    [(None, -1), ("x", -1), ("7", 7), (str(LARGEST), LARGEST), (str(LARGEST + 1), -1), ("9" * 5000, -1)],
    ids=["none", "text", "small", "largest", "larger", "long"],
)
def test_a_number_that_no_status_can_have_is_none(text: str | None, number: int) -> None:
    assert number_of(text) == number


async def test_a_pod_whose_label_changes_is_one_of_the_other_job_s_alone(tmp_path: Path) -> None:
    async with connected(WatchServer()) as client:
        controller, woken, on_pod = _controller(client, tmp_path)
        first = _trimmed(_pod())
        second = _trimmed(_edited(_pod(), labels={names.LABEL_JOB: "other"}))
        on_pod(Change(KEY, None, first))
        woken.clear()
        on_pod(Change(KEY, first, second))
        assert woken == {("team", "job"), ("team", "other")}
        assert controller._pods.of_job(("team", "job")) == []
        assert [pod.name for pod in controller._pods.of_job(("team", "other"))] == ["job-1-0"]


async def test_a_pod_that_could_not_be_read_last_is_gone_when_it_is_deleted(tmp_path: Path) -> None:
    async with connected(WatchServer()) as client:
        controller, woken, on_pod = _controller(client, tmp_path)
        first = _trimmed(_pod())
        odd = {"metadata": first["metadata"]}
        on_pod(Change(KEY, None, first))
        on_pod(Change(KEY, first, odd))
        assert len(controller._pods) == 1, "it may hold GPUs"
        woken.clear()
        on_pod(Change(KEY, odd, None))
        assert len(controller._pods) == 0
        assert woken == {("team", "job")}


def _trimmed(pod: Json) -> Json:
    return trimmed(read_pod)(pod)


def _controller(client: Any, path: Path) -> tuple[Controller, set[tuple[str, str]], Callable[[Change], None]]:
    """A controller, the jobs that it wakes, and what it does on news of a pod."""
    controller = Controller(client, Environment("image", "https://extender", path), lambda: 0.0)
    woken: set[tuple[str, str]] = set()
    controller._queue.add = woken.add  # type: ignore[assignment, method-assign]
    return controller, woken, controller._on_owned(controller._pods)
