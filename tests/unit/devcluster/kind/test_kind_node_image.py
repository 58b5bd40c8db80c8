"""The node image for kind: its archives, its files, and what kubeadm asks of it."""

import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.kind.archive import FolderImage, write_archive
from synergy_devcluster.kind.node_image import FILES, fingerprint, tag
from synergy_devcluster.kind.node_images import AGENT_IMAGE, wanted_by
from synergy_devcluster.programs.versions import pinned


def _kubeadm(folder: Path, *tags: str) -> Path:
    path = folder / "kubeadm"
    path.write_text("#!/bin/sh\n" + "".join(f"echo {tag}\n" for tag in tags))
    path.chmod(0o755)
    return path


def test_an_archive_holds_its_images_under_the_digests_of_their_content(tmp_path: Path) -> None:
    images = []
    for name in ("one", "two"):
        (tmp_path / name / "etc").mkdir(parents=True)
        (tmp_path / name / "etc" / "name").write_text(name)
        images.append(FolderImage(f"localhost/{name}:1", tmp_path / name, ("/init",), {"StopSignal": "SIGRTMIN+3"}))
    file = tmp_path / "images.tar"
    write_archive(images, file)

    with tarfile.open(file) as archive:
        contents = {member.name: _content(archive, member) for member in archive}
    manifest = json.loads(contents["manifest.json"])
    assert [entry["RepoTags"] for entry in manifest] == [["localhost/one:1"], ["localhost/two:1"]]
    for name, entry in zip(("one", "two"), manifest, strict=True):
        (layer,) = entry["Layers"]
        assert hashlib.sha256(contents[layer]).hexdigest() == layer.removesuffix(".tar")
        config = json.loads(contents[entry["Config"]])
        assert config["rootfs"]["diff_ids"] == [f"sha256:{layer.removesuffix('.tar')}"]
        assert config["config"]["Entrypoint"] == ["/init"]
        assert config["config"]["StopSignal"] == "SIGRTMIN+3"
        with tarfile.open(fileobj=io.BytesIO(contents[layer])) as inner:
            assert _content(inner, inner.getmember("./etc/name")) == name.encode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images.tar", "one", "two"], "nothing else is left"


def test_an_archive_of_a_folder_that_is_not_there_is_an_error_and_leaves_no_archive(tmp_path: Path) -> None:
    with pytest.raises(DevclusterError, match="tar"):
        write_archive([FolderImage("localhost/none:1", tmp_path / "none")], tmp_path / "images.tar")
    assert not (tmp_path / "images.tar").exists()


def test_images_are_named_as_kubeadm_names_them(tmp_path: Path) -> None:
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", "pause")
    given = [f"registry.k8s.io/{name}:v1" for name in names]
    kubeadm = _kubeadm(tmp_path, *given, "registry.k8s.io/coredns/coredns:v1.14.2")
    assert wanted_by(kubeadm, "1.36.3")["coredns"] == "registry.k8s.io/coredns/coredns:v1.14.2"
    assert wanted_by(kubeadm, "1.36.3")["etcd"] == "registry.k8s.io/etcd:v1"


def test_an_image_of_kubeadm_that_nothing_here_makes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DevclusterError, match="wants images etcd novelty: unknown here"):
        wanted_by(_kubeadm(tmp_path, "registry.k8s.io/novelty:v1", "registry.k8s.io/etcd:v1"), "1.36.3")


def test_the_manifests_name_what_the_image_has() -> None:
    cni = list(yaml.safe_load_all((FILES / "kind/manifests/default-cni.yaml").read_text()))
    (agent,) = [document for document in cni if document["kind"] == "DaemonSet"]
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    assert container["image"] == AGENT_IMAGE
    storage = yaml.safe_load((FILES / "kind/manifests/default-storage.yaml").read_text())
    assert storage["metadata"]["name"] == "standard"


@pytest.mark.parametrize("script", sorted((FILES / "usr/local/bin").iterdir()), ids=lambda path: path.name)
def test_the_scripts_are_programs_that_the_shell_reads(script: Path) -> None:
    assert os.access(script, os.X_OK)
    subprocess.run(["sh", "-n", script], check=True)


def test_the_image_is_named_by_its_kubernetes_and_known_by_what_is_in_it() -> None:
    assert tag().endswith(f":v{pinned().kubernetes}")
    assert fingerprint() == fingerprint()
    assert len(fingerprint()) == 12


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""
