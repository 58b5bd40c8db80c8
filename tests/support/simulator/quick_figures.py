"""A reproduction in its quick version, as a user runs it."""

import json
from pathlib import Path

from click.testing import CliRunner

from synergy_cli.main import main


def quick_figures(name: str, plot: Path) -> dict[str, float]:
    """What `kube-synergy reproduce NAME --quick` finds, by name; its plots go to `plot`."""
    arguments = ["reproduce", name, "--quick", "--processes", "1", "--plot", str(plot), "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, float] = json.loads(result.stdout)["figures"]
    return found
