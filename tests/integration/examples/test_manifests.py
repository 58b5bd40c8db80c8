"""The example manifests start their scripts with options that these take."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.job import debian_torch
from support.job.example import EXAMPLES

MANIFESTS = sorted((EXAMPLES / "manifests").glob("*.yaml"))


def documents(file: Path) -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in yaml.safe_load_all(file.read_text())}


@pytest.fixture(params=MANIFESTS, ids=lambda file: file.stem)
def manifest(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    return documents(request.param)


def test_the_script_takes_the_options(manifest: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    container = manifest["TrainingJob"]["spec"]["template"]["spec"]["containers"][0]
    script = EXAMPLES / Path(container["command"][1]).relative_to("/examples")
    args = [str(tmp_path) if arg == "/checkpoints" else arg for arg in container["args"]]
    environ, python = {**os.environ, "WORLD_SIZE": "1"}, sys.executable
    if script.name.startswith("torch"):
        debian_torch.required()
        environ, python = environ | debian_torch.ENVIRON, str(debian_torch.PYTHON)
    done = subprocess.run(
        [python, str(script), *args, "--steps", "3"], check=True, capture_output=True, text=True, env=environ
    )
    assert "done after step 3" in done.stdout
