"""The recipe of a further resource dimension in CONTRIBUTING.md, applied to copies of the packages: ephemeral storage
comes from a node's allocatable through the plan into the requests of a worker pod."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from synergy_api.quantity import byte_count

GI = 1 << 30
ROOT = Path(__file__).parents[3]
PACKAGES = {
    "api": "synergy_api",
    "core": "synergy_core",
    "extender": "synergy_extender",
    "operator": "synergy_operator",
}

QUANTITY = '    ephemeral_storage: Annotated[{} | None, Field(description="Storage, such as 50Gi.")] = None\n'
BYTES = '    ephemeral_storage_bytes: Annotated[int, Field(ge={}, description="Ephemeral storage in bytes.")]\n'
BOUND = '    {}_ephemeral_storage_bytes: Annotated[_Bound, Field(description="Was refused.")] = None\n'
ENTRY = '    Dimension("ephemeral_storage_bytes", "ephemeral-storage", byte_count, format_bytes),\n'
EDITS = {
    "api/synergy_api/amounts.py": {
        "    memory_bytes: int = 0": "    ephemeral_storage_bytes: int = 0\n",
        '    Dimension("memory_bytes"': ENTRY,
    },
    "api/synergy_api/parts/allocation.py": {"    memory_bytes:": BYTES.format(1)},
    "api/synergy_api/parts/sizes.py": {
        "    memory:": QUANTITY.format("PositiveQuantity"),
        "    max_memory_bytes:": BOUND.format("min") + BOUND.format("max"),
    },
    "api/synergy_api/parts/profile.py": {
        '    memory_bytes: Annotated[int, Field(ge=1, description="Memory limit of the runs': BYTES.format(1)
    },
    "api/synergy_api/resources/gpu_pool.py": {"    memory:": QUANTITY.format("Quantity")},
    "api/synergy_api/parts/service.py": {"    memory_bytes:": BYTES.format(0)},
}
"""By file of the recipe: what it adds, by the beginning of the line after which it stands."""


def test_ephemeral_storage_by_the_recipe(tmp_path: Path) -> None:
    for room, package in PACKAGES.items():
        shutil.copytree(ROOT / room / package, tmp_path / package)
    for name, edits in EDITS.items():
        file = tmp_path / name.partition("/")[2]
        text = file.read_text()
        for line, added in edits.items():
            text, found = re.subn(f"^{re.escape(line)}.*\\n", lambda match, new=added: match[0] + new, text, flags=re.M)
            assert found == 1, (name, line)
        file.write_text(text)
    script = Path(__file__).with_name("follow_a_dimension.py")
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "tests")])
    run = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["node"] == {"ephemeral_storage_bytes": 100 * GI}
    assert found["least"] == {"ephemeral_storage_bytes": 70 * GI}
    assert len(found["granted"]) == 1, "two jobs with 70 GiB each were put on a node with 100 GiB"
    assert 70 * GI <= found["status"] <= 100 * GI
    assert found["requests"]["ephemeral-storage"] == found["limits"]["ephemeral-storage"]
    assert byte_count(found["requests"]["ephemeral-storage"]) == found["status"]
    assert found["profile run"] == {"ephemeral_storage_bytes": 30 * GI}


def test_the_recipe_names_these_files() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    recipe = text[text.index("### A resource dimension") : text.index("### A reason")]
    for name in EDITS:
        assert name.removeprefix("api/synergy_api/") in recipe, name
