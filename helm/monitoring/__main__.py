"""Write the dashboards, or with `--check` say which file is not what the code makes."""

import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from monitoring import cluster, control_plane, forecasts_and_history, tenant

FOLDER = Path(__file__).parent.parent / "kube-synergy" / "dashboards"


def dashboards() -> dict[str, str]:
    """File names and contents."""
    encoder = JSONEncoder(sort_keys=True, indent=2)
    made = {
        "cluster": cluster.build(),
        "tenants": tenant.build(),
        "control-plane": control_plane.build(),
        "forecasts-and-history": forecasts_and_history.build(),
    }
    return {f"{name}.json": encoder.encode(one.build()) + "\n" for name, one in made.items()}


def main(arguments: list[str]) -> int:
    """0, or 1 if a file is not up to date."""
    stale = [name for name, text in dashboards().items() if _text(name) != text]
    if arguments == ["--check"]:
        for name in stale:
            sys.stderr.write(f"{FOLDER / name} is not up to date: make dashboards\n")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in dashboards().items():
        (FOLDER / name).write_text(text)
    return 0


def _text(name: str) -> str:
    path = FOLDER / name
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
