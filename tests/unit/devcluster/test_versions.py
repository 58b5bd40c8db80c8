"""Pinned versions: read from one file, agreed with by the Go modules, found in what programs print."""

import re

import pytest

from synergy_devcluster.programs.toolchain import (
    GO_MODULES,
    kind_module,
    kind_node_module,
    kubeconform_module,
    modules,
    vale_module,
)
from synergy_devcluster.programs.versions import at_least, find_version, pinned


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Kubernetes v1.36.3\n", "1.36.3"),
        ("etcd Version: 3.6.16\nGit SHA: Not provided", "3.6.16"),
        ("CoreDNS-1.14.6\nlinux/amd64, go1.26.8, ", "1.14.6"),
        ("v3.21.4+gabcdef0", "3.21.4"),
        ("Client Version: v1.32.4-dispatcher\nKustomize Version: v5.5.0", "1.32.4-dispatcher"),
        ("no version here", None),
        ("go1.26.8", None),
    ],
)
def test_a_version_is_found_in_what_a_program_prints(text: str, version: str | None) -> None:
    assert find_version(text) == version


@pytest.mark.parametrize(
    ("version", "minimum", "enough"),
    [("1.26.8", "1.26", True), ("1.27", "1.26", True), ("2.0", "1.26", True), ("1.9.9", "1.26", False)],
)
def test_versions_are_compared_as_numbers(version: str, minimum: str, enough: bool) -> None:
    assert at_least(version, minimum) is enough


@pytest.mark.parametrize(
    ("folder", "requirement", "version"),
    [
        ("kubernetes", "k8s.io/kubernetes", pinned().kubernetes),
        ("kubernetes", "k8s.io/kubelet => k8s.io/kubelet", pinned().kubernetes.replace("1.", "0.", 1)),
        ("etcd", "go.etcd.io/etcd/server/v3", pinned().etcd),
        ("clients", "helm.sh/helm/v3", pinned().helm),
        ("clients", "sigs.k8s.io/kwok", pinned().kwok),
        ("clients", "github.com/coredns/coredns", pinned().coredns),
        ("kind", "sigs.k8s.io/kind", pinned().kind),
        ("kind-node", "k8s.io/kubernetes", pinned().kubernetes),
        ("kind-node", "k8s.io/client-go", pinned().kubernetes.replace("1.", "0.", 1)),
        ("kubeconform", "github.com/yannh/kubeconform", pinned().kubeconform),
        ("vale", "github.com/errata-ai/vale/v2", pinned().vale),
    ],
)
def test_the_go_modules_require_the_pinned_versions(folder: str, requirement: str, version: str) -> None:
    required = (GO_MODULES / folder / "go.mod").read_text()
    assert re.search(rf"(?m)^(require )?\s*{re.escape(requirement)} v{re.escape(version)}\b", required)


def test_every_module_has_a_lock_file_and_a_fingerprint_of_its_own() -> None:
    every = (*modules(), kind_module(), kind_node_module(), kubeconform_module(), vale_module())
    folders = [module.folder for module in every]
    locked = [folder for folder in folders if (GO_MODULES / folder / "go.sum").exists()]
    assert set(folders) - set(locked) == {"pause"}, "only the program without dependencies has no go.sum"
    assert len({module.fingerprint() for module in every}) == len(folders)
