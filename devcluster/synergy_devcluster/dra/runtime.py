#!/usr/bin/python3 -IS
"""runc that applies CDI's container edits, for containerd 1.6, which knows no CDI.

`runc` of the real nodes is a shell script that calls a copy of this file before each `create`, with the system's
Python. It looks for a file of edits by the names in the container's annotations, and adds environment and mounts.
"""

import json
import sys
from pathlib import Path
from typing import Any

_ANNOTATION = "io.kubernetes.cri."


def edits_file(folder: Path, namespace: str, pod: str, container: str) -> Path:
    """Where the edits of a container are: none of these names has an underscore."""
    return folder / f"{namespace}_{pod}_{container}.json"


def apply(config: dict[str, Any], edits: dict[str, Any]) -> None:
    """Add the edits to a bundle's config."""
    config["process"].setdefault("env", []).extend(edits.get("env") or [])
    config.setdefault("mounts", []).extend(
        {"destination": one["containerPath"], "source": one["hostPath"], "type": "bind", "options": one["options"]}
        for one in edits.get("mounts") or []
    )


def main(folder: Path, bundle: Path) -> None:
    """Edit the bundle's config, if there are edits for its container."""
    file = bundle / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    annotations = config.get("annotations") or {}
    names = [
        annotations.get(f"{_ANNOTATION}{key}", "") for key in ("sandbox-namespace", "sandbox-name", "container-name")
    ]
    found = edits_file(folder, *names)
    if all(names) and found.exists():
        apply(config, json.loads(found.read_text(encoding="utf-8")))
        file.write_text(json.dumps(config), encoding="utf-8")


def script(folder: Path, program: Path) -> str:
    """The shell script that containerd runs as `runc`. Without edits on the node it costs one look into a folder."""
    return f"""#!/bin/sh
if [ -n "$(ls -A {folder} 2>/dev/null)" ]; then
  previous= create= bundle=
  for word in "$@"; do
    [ "$word" = create ] && create=yes
    [ "$previous" = --bundle ] && bundle=$word
    previous=$word
  done
  if [ -n "$create" ] && [ -n "$bundle" ]; then {program} {folder} "$bundle" || exit 1; fi
fi
exec runc "$@"
"""


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
