"""`python -m support.prose`: check the documentation's prose with Vale, which is built on the first run."""

import subprocess
import sys
from pathlib import Path

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs.toolchain import locate, vale_module

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "helm/kube-synergy/README.md")
GENERATED = {"api.md", "troubleshooting.md"}
"""Their words stand in `api/`."""


def pages() -> list[str]:
    """The pages that are written by hand, relative to the root. Decisions are records: they stay as they were."""
    every = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/reproductions").glob("*.md"))]
    own = (file for file in every if file.name not in GENERATED)
    return [*PAGES, *(str(file.relative_to(ROOT)) for file in own)]


def main() -> int:
    """The exit code of Vale: 0 where it finds nothing."""
    try:
        vale = locate(Paths.of(), lambda line: print(line, file=sys.stderr), wanted=(vale_module(),))["vale"]
    except DevclusterError as error:
        print(error, file=sys.stderr)
        return 1
    return subprocess.run([vale, "--output=line", *pages()], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
