"""Which images the chart names, and how a registry or a mirror changes them."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import synergy_devcluster
from synergy_api.names import PRODUCT_VERSION

Rendered = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Rendered]

pytestmark = pytest.mark.timeout(1800)


def _container(objects: Rendered, component: str) -> dict[str, Any]:
    (container,) = objects["Deployment", f"kube-synergy-{component}"]["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = container
    return found


def test_images_are_bare_names_until_a_registry_is_given(render: Render, objects: Rendered) -> None:
    assert _container(objects, "extender")["image"] == f"kube-synergy-extender:{PRODUCT_VERSION}"
    given = render("image.registry=registry.example.com/team", "image.tag=v9")
    for component in ("extender", "operator"):
        assert _container(given, component)["image"] == f"registry.example.com/team/kube-synergy-{component}:v9"


@pytest.mark.parametrize(
    ("cluster", "tag"),
    [
        ("v1.36.3", "v1.36.3"),
        ("v1.34.1-gke.1000", "v1.34.1"),
        ("v1.33.4+k3s1", "v1.33.4"),
        ("v1.35.2-eks-0a1b", "v1.35.2"),
    ],
)
def test_the_scheduler_is_kubernetes_own_of_the_cluster_s_version(chart: Path, cluster: str, tag: str) -> None:
    program = synergy_devcluster.programs(print)["helm"]
    command = [program, "template", "anything", str(chart), f"--kube-version={cluster}"]
    done = subprocess.run(
        [*command, "--show-only=templates/scheduler.yaml"], capture_output=True, text=True, check=True
    )
    assert f"image: registry.k8s.io/kube-scheduler:{tag}\n" in done.stdout


def test_the_scheduler_s_image_is_not_that_of_the_project_s_registry_unless_it_is_named(render: Render) -> None:
    own = render("image.registry=registry.example.com")
    assert _container(own, "scheduler")["image"].startswith("registry.k8s.io/kube-scheduler:v")
    for more in ((), ("global.imageRegistry=mirror.example.com",)):
        named = render("scheduler.image=registry.example.com/kube-scheduler:v1.35.0", *more)
        assert _container(named, "scheduler")["image"] == "registry.example.com/kube-scheduler:v1.35.0"


def test_a_mirror_is_honoured_for_every_image(render: Render) -> None:
    mirror = "mirror.example.com:5000/kube"
    rendered = render(f"global.imageRegistry={mirror}", "image.registry=registry.example.com/team")
    images = set(_images(list(rendered.values())))
    assert {image.rpartition("/")[0] for image in images} == {mirror}
    names = {image.rpartition("/")[2].rpartition(":")[0] for image in images}
    assert names == {
        "kube-scheduler",
        *(f"kube-synergy-{name}" for name in ("operator", "extender", "dashboard", "profiler")),
    }
    hooks = [item for item in rendered.values() if "helm.sh/hook" in item["metadata"].get("annotations", {})]
    assert set(_images(hooks)) == {f"{mirror}/kube-synergy-operator:{PRODUCT_VERSION}"}


def _images(value: Any) -> Iterator[str]:
    """Images of containers at any depth, and the one that the operator is told of."""
    if isinstance(value, list):
        for one in value:
            yield from _images(one)
    elif isinstance(value, dict):
        if isinstance(value.get("image"), str):
            yield value["image"]
        if value.get("name") == "SYNERGY_PROFILER_IMAGE":
            yield value["value"]
        for one in value.values():
            yield from _images(one)
