"""The locked requirements of each image have the packages that its programs import.

Which of the project's own packages an image needs is in `tests/unit/devcluster/test_project_images.py`.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = [
    ("operator/Dockerfile", "synergy_operator.__main__"),
    ("operator/Dockerfile", "synergy_operator.certificates.__main__"),
    ("operator/Dockerfile", "synergy_operator.definitions.__main__"),
    ("extender/Dockerfile", "synergy_extender.__main__"),
    ("extender/Dockerfile", "synergy_extender.forecasts.process"),
    ("dashboard/Dockerfile", "synergy_dashboard.__main__"),
    ("dashboard/Dockerfile", "synergy_dashboard.api.future"),
    ("simulator/Dockerfile", "synergy_cli.simulation.compare"),
    ("simulator/Dockerfile", "synergy_cli.simulation.reproduce"),
    ("simulator/Dockerfile", "synergy_cli.simulation.calibrate"),
    ("simulator/Dockerfile", "distributed.cli.dask_worker"),
]
ASK = """
import importlib, importlib.metadata, json, sys
importlib.import_module(sys.argv[1])
loaded = {name.partition(".")[0] for name in sys.modules}
of = importlib.metadata.packages_distributions()
print(json.dumps({name: of.get(name, []) for name in loaded}))
"""


@pytest.mark.parametrize(("dockerfile", "program"), PROGRAMS)
def test_the_requirements_have_what_the_program_imports(repository: Path, dockerfile: str, program: str) -> None:
    text = (repository / dockerfile).read_text()
    (requirements,) = re.findall(r"^COPY (requirements/(?!build)[a-z]+\.txt) ", text, re.MULTILINE)
    locked = set(re.findall(r"^([a-zA-Z0-9._-]+)(?:\[.*\])?==", (repository / requirements).read_text(), re.MULTILINE))
    installed = {_normal(name) for name in locked}
    asked = subprocess.run([sys.executable, "-c", ASK, program], capture_output=True, text=True, check=True)
    loaded: dict[str, list[str]] = json.loads(asked.stdout)
    own = {name for name in loaded if name.startswith("synergy_")}
    assert program.partition(".")[0] in {*own, "distributed"}
    others = {name: {_normal(one) for one in found} for name, found in loaded.items() if found and name not in own}
    assert {name for name, found in others.items() if not found & installed} <= {
        "_distutils_hack",
        "colorama",  # click takes it where it is, as where the documentation was built
        "google",  # a namespace that every program of a virtual environment with protobuf has
        "setuptools",
    }


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
