"""`make demo-kind`, the whole of it, on a machine without Docker."""

import subprocess
import sys
from pathlib import Path

import pytest

from synergy_devcluster.kind.docker import OwnDocker, leftovers

pytestmark = [pytest.mark.e2e, pytest.mark.long]


@pytest.mark.timeout(1800)
def test_the_demo_shows_all_it_is_to_show_and_leaves_nothing(own_docker: OwnDocker, tmp_path: Path) -> None:
    own_docker.end()
    log = tmp_path / "demo.log"
    with log.open("w") as output:
        command = [str(Path(sys.executable).parent / "kube-synergy"), "demo", "--on", "kind"]
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    told = log.read_text()
    print(told)
    assert done.returncode == 0
    assert "kind create cluster --config kind-config.yaml" in told
    assert "the demo has shown all that it should" in told
    assert leftovers(own_docker) == []
