"""kubeconfig files for the administrator and for each component."""

import base64
from pathlib import Path

import yaml

from synergy_devcluster.control_plane.pki import Authority, KeyPair

API_URL = "https://127.0.0.1:6443"


def write(path: Path, authority: Authority, identity: KeyPair) -> Path:
    """Write a kubeconfig that carries its certificates inside, readable by its owner only; return its path."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "devcluster",
                "cluster": {"server": API_URL, "certificate-authority-data": _base64(authority.certificate)},
            }
        ],
        "users": [
            {
                "name": "devcluster",
                "user": {
                    "client-certificate-data": _base64(identity.certificate),
                    "client-key-data": _base64(identity.key),
                },
            }
        ],
        "contexts": [{"name": "devcluster", "context": {"cluster": "devcluster", "user": "devcluster"}}],
        "current-context": "devcluster",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
