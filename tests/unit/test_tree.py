"""The size of the house: a reader finds a module in its folder, and reads a module at once."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPONENTS = (
    "api", "cli", "clusters", "core", "dashboard", "devcluster", "extender", "job", "kube", "operator", "profiler-job",
    "sdk", "service", "simulator", "view",
)  # fmt: skip
MODULES = [file for component in COMPONENTS for file in (ROOT / component).glob("*/**/*.py")]
MOST_MODULES = 15
"""In one folder, without `__init__`."""
MOST_LINES = 300
GENERATED = {"deviceplugin_pb2.py", "kubelet_pb2.py"}


def test_no_folder_has_too_many_modules() -> None:
    folders = Counter(file.parent.relative_to(ROOT) for file in MODULES if file.name != "__init__.py")
    assert folders[Path("core/synergy_core/mechanisms")]
    assert {folder: number for folder, number in folders.items() if number > MOST_MODULES} == {}


def test_no_module_is_too_long() -> None:
    lines = {file.relative_to(ROOT): file.read_text(encoding="utf-8").count("\n") for file in MODULES}
    assert max(lines.values()) > MOST_LINES // 2
    assert {file: count for file, count in lines.items() if count > MOST_LINES and file.name not in GENERATED} == {}
