"""`python -m support.prose`: check the documentation's prose with Vale, which is built on the first run."""

import subprocess
import sys

from support.documentation import ROOT, pages
from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs.toolchain import locate, vale_module


def main() -> int:
    """The exit code of Vale: 0 where it finds nothing."""
    try:
        vale = locate(Paths.of(), lambda line: print(line, file=sys.stderr), wanted=(vale_module(),))["vale"]
    except DevclusterError as error:
        print(error, file=sys.stderr)
        return 1
    return subprocess.run(
        [vale, "--output=line", *(str(page.relative_to(ROOT)) for page in pages())], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
