"""Install kube-synergy itself, from the source tree, on a devcluster."""

import hashlib
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import synergy_devcluster
from synergy_devcluster.project_images import build_images, load_images

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
    chart = SOURCE / "helm" / "kube-synergy"
    if not chart.is_dir():
        raise synergy_devcluster.DevclusterError(f"{chart} is not there: run this from a source tree")
    load_images(cluster, report=report)
    report("helm install kube-synergy")
    command = [
        str(cluster.program("helm")),
        *("upgrade", "--install", RELEASE, str(chart)),
        *("--namespace", NAMESPACE, "--create-namespace"),
        *("--values", str(chart / "values-devcluster.yaml")),
        *("--kubeconfig", str(cluster.kubeconfig)),
        *("--set-string", f"podAnnotations.image-revision={_revision(cluster)}"),
        *("--wait", "--timeout", _TIMEOUT),
    ]
    for name, value in (values or {}).items():
        command += ["--set", f"{name}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise synergy_devcluster.DevclusterError(f"helm: {done.stderr.strip()}")


def _revision(cluster: synergy_devcluster.Cluster) -> str:
    """What changes when an image does: the tag stays, and pods with equal specs would go on with the old one."""
    archives = build_images(paths=cluster.paths).values()
    return hashlib.sha256("".join(archive.name for archive in archives).encode()).hexdigest()[:12]
