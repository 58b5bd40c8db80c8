"""`python3 -m synergy_devcluster.release FOLDER`."""

import sys
from pathlib import Path

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.release.make import make_release


def main(arguments: list[str]) -> int:
    """Make the release and list its files; 2 with one line on stderr if that cannot be."""
    if len(arguments) != 1:
        print("usage: python3 -m synergy_devcluster.release FOLDER", file=sys.stderr)  # noqa: T201
        return 2
    try:
        made = make_release(Path(arguments[0]), report=lambda step: print(step, file=sys.stderr))  # noqa: T201
    except DevclusterError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    for file in made:
        print(f"{file.stat().st_size / 1e6:8.1f} MB  {file}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
