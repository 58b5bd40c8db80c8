"""The demo on kind: what is checked before anything starts, and that its files agree with each other."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from synergy_cli.demo.kind import LABEL_COUNT, KindCluster
from synergy_cli.demo.kind_tools import IMAGES, OwnTools, UsersTools, missing_for_kind, tools_here
from synergy_cli.demo.story import documents, offering
from synergy_devcluster import DevclusterError
from synergy_devcluster.programs import prerequisites


def _program(folder: Path, name: str, exit_code: int = 0) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho 'permission denied' >&2\nexit {exit_code}\n")
    path.chmod(0o755)


def test_all_that_is_missing_is_named_at_once_with_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DevclusterError) as caught:
        KindCluster(tools=UsersTools()).check()
    for words in ("docker is not on PATH", "go install sigs.k8s.io/kind@v", "install Helm 3"):
        assert words in str(caught.value)


def test_a_docker_that_does_not_answer_is_told_from_one_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kind", "helm"):
        _program(tmp_path, name)
    _program(tmp_path, "docker", exit_code=1)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    [told] = missing_for_kind()
    assert "Docker does not answer" in told
    assert "permission denied" in told


def test_nothing_is_missing_where_all_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("docker", "kind", "helm"):
        _program(tmp_path, name)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert missing_for_kind() == []


def test_a_docker_that_answers_is_used_and_nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, "docker")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    tools = tools_here()
    assert isinstance(tools, UsersTools)
    assert tools.start(print) == []
    assert tools.how_to_end("kube-synergy") == "kind delete cluster --name kube-synergy"


@pytest.mark.parametrize(
    ("others", "wanted"), [((), OwnTools), (("the devcluster starts containers: run it as root",), UsersTools)]
)
def test_without_docker_the_projects_own_is_used_where_it_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...], wanted: type
) -> None:
    _program(tmp_path, "docker", exit_code=1)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(prerequisites, "find_missing", lambda: prerequisites.Missing((), others))
    assert isinstance(tools_here(), wanted)


def test_its_own_docker_is_ended_also_if_kind_cannot_delete_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, "docker")
    _program(tmp_path, "kind", exit_code=1)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    tools, ended = UsersTools(), []
    monkeypatch.setattr(tools, "end", lambda: ended.append("Docker"))
    with pytest.raises(DevclusterError, match="permission denied"):
        KindCluster(tools=tools).end(print)
    assert ended == ["Docker"]


def test_the_users_docker_builds_each_image_and_kind_loads_them(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("docker", "kind"):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/calls\necho sha256:$#\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    UsersTools().load(repository, "mine", print)
    *builds, load = (tmp_path / "calls").read_text().splitlines()
    assert builds == [
        f"docker build --quiet --file {repository / image.dockerfile} --tag {image.tag} {repository}"
        for image in IMAGES
    ]
    assert load == f"kind load docker-image {' '.join(image.tag for image in IMAGES)} --name mine"


def test_the_plugin_offers_as_many_gpus_as_the_workers_label_says(repository: Path) -> None:
    config = yaml.safe_load((repository / "kind-config.yaml").read_text())
    plugin = yaml.safe_load((repository / "examples" / "kind" / "fake-gpus.yaml").read_text())
    pod = plugin["spec"]["template"]["spec"]
    [labels] = [node["labels"] for node in config["nodes"] if node["role"] == "worker"]
    assert f"--gpus={labels[LABEL_COUNT]}" in pod["containers"][0]["args"]
    assert pod["nodeSelector"].items() <= labels.items()
    assert pod["containers"][0]["image"] in [image.tag for image in IMAGES]


@pytest.mark.parametrize(("cores", "reserved"), [("2", "400m"), ("16", "14400m"), ("1", "0")])
def test_the_demos_pool_offers_the_same_cpu_on_every_machine(repository: Path, cores: str, reserved: str) -> None:
    [pool] = [document for document in documents(repository / "examples" / "demo") if document["kind"] == "GPUPool"]
    nodes: list[dict[str, Any]] = [
        {"metadata": {"labels": dict(pool["spec"]["nodeSelector"])}, "status": {"allocatable": {"cpu": cores}}},
        {"metadata": {"labels": {"other": "node"}}, "status": {"allocatable": {"cpu": "500m"}}},
    ]
    after = offering(pool, nodes, 1600)
    assert after["spec"]["systemReserved"]["cpu"] == reserved
    assert after["spec"]["gpuType"] == "A100"
