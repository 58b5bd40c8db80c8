"""Install kube-synergy itself, from the source tree, on a devcluster."""

import hashlib
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import synergy_devcluster
from synergy_devcluster.images.project import build_images, load_images

NAMESPACE = "kube-synergy"
RELEASE = "kube-synergy"
_TIMEOUT = "300s"
SOURCE = Path(__file__).resolve().parents[2]


def install(
    cluster: synergy_devcluster.Cluster,
    values: Mapping[str, str] | None = None,
    *,
    report: Callable[[str], None],
) -> None:
    """Build and load the images, install or upgrade the chart with `values`, wait until all of it is ready.

    Raises DevclusterError with Helm's words if that fails.
    """
    load_images(cluster, report=report)
    report("helm install kube-synergy")
    helm = str(cluster.program("helm"))
    helm_install(helm, cluster.kubeconfig, "values-devcluster.yaml", values or {}, revision=_revision(cluster))


def helm_install(
    helm: str,
    kubeconfig: Path,
    values_file: str,
    values: Mapping[str, str],
    *,
    revision: str,
    source: Path = SOURCE,
) -> None:
    """Install or upgrade the chart with one of its values files and `values`, wait until all of it is ready.

    `revision` is what changes when an image does: the tag stays, and pods with equal specs would go on with the old
    one. Raises DevclusterError with Helm's words if that fails.
    """
    chart = source / "helm" / "kube-synergy"
    if not chart.is_dir():
        raise synergy_devcluster.DevclusterError(f"{chart} is not there: run this from a source tree")
    short = hashlib.sha256(revision.encode()).hexdigest()[:12]
    command = [
        helm,
        *("upgrade", "--install", RELEASE, str(chart)),
        *("--namespace", NAMESPACE, "--create-namespace"),
        *("--values", str(chart / values_file)),
        *("--kubeconfig", str(kubeconfig)),
        *("--set-string", f"podAnnotations.image-revision={short}"),
        *("--wait", "--timeout", _TIMEOUT),
    ]
    for name, value in values.items():
        command += ["--set", f"{name}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise synergy_devcluster.DevclusterError(f"helm: {done.stderr.strip()}")


def _revision(cluster: synergy_devcluster.Cluster) -> str:
    return "".join(archive.name for archive in build_images(paths=cluster.paths).values())
