"""Outputs that the documentation shows: recorded by an end-to-end test, and put into the pages from their files.

The test writes them where RECORD_OUTPUTS is set. `python -m support.recorded` then writes the pages. A page has a
comment that names the file, and below it the block:

    <!-- recorded: queue -->
    ```text
    $ kubectl synergy queue
    ...
    ```
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.documentation import ROOT, pages

FOLDER = ROOT / "docs" / "recorded"
VARIABLE = "RECORD_OUTPUTS"
_BLOCK = re.compile(r"(?P<mark>^<!-- recorded: (?P<name>[\w.-]+) -->\n)```text\n.*?^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"^<!-- recorded: ([\w.-]+) -->$", re.MULTILINE)
_VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z"), "2026-01-01T12:00Z"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "2026-01-01 12:00:00"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "00000000-0000-0000-0000-000000000000"),
)
"""Moments and identities, which differ in each run."""


def record(name: str, command: str, output: str, names: Mapping[str, str]) -> None:
    """Keep an output, if the run is one that records. `names` are those of this run, and what stands for them."""
    if os.environ.get(VARIABLE):
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.txt").write_text(normalised(f"$ {command}\n{output}", names), encoding="utf-8")


def normalised(text: str, names: Mapping[str, str]) -> str:
    """The text as another run would have it; without spaces at the ends of lines. Longer names are replaced first."""
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    for pattern, stands in _VOLATILE:
        text = pattern.sub(stands, text)
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())


def filled(page: str) -> str:
    """The page with each block as it is recorded. Raises FileNotFoundError for an output that is not there."""
    return _BLOCK.sub(
        lambda found: f"{found['mark']}```text\n{(FOLDER / (found['name'] + '.txt')).read_text('utf-8')}```", page
    )


def marks(page: str) -> list[str]:
    """The outputs that a page names."""
    return _MARK.findall(page)


def stale() -> Iterator[Path]:
    """Pages that do not have their outputs as they are recorded."""
    for page in pages():
        text = page.read_text("utf-8")
        if filled(text) != text:
            yield page


def main() -> int:
    """Write the pages."""
    for page in stale():
        page.write_text(filled(page.read_text("utf-8")), encoding="utf-8")
        print(f"{page.relative_to(ROOT)} has its recorded outputs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
