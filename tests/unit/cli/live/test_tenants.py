"""`simulate` and `compare --tenant`: a name that nobody has is refused."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from support.simulator.simulation import CLUSTER
from synergy_cli.main import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c.yaml").write_text(CLUSTER)
    return tmp_path


def _run(folder: Path, command: str, tenants: list[str], *more: str) -> Result:
    rows = [f"j{index},{index},1,resnet18,500,600,{tenant}" for index, tenant in enumerate(tenants)]
    (folder / "t.csv").write_text("\n".join(["job_id,arrival_s,gpus,model,steps,duration_s,tenant", *rows]))
    files = ("--trace", str(folder / "t.csv"), "--cluster", str(folder / "c.yaml"))
    return CliRunner().invoke(main, [command, *files, *more])


@pytest.mark.parametrize(
    "command", [("simulate", "--policy", "hierarchical"), ("compare", "--policies", "hierarchical")]
)
@pytest.mark.parametrize(
    ("tenants", "more", "line"),
    [
        (["red", "", "blue"], (), "did you mean 'red'? choose one of blue, red"),
        (["", ""], (), "none of the jobs names a tenant"),
        (["red", "rde"], ("--jobs", "0:1"), "did you mean 'red'? choose one of red"),
        (
            [f"t{index}" for index in range(10, 23)],
            (),
            f"choose one of {', '.join(f't{n}' for n in range(10, 20))} and 3 more",
        ),
    ],
)
def test_a_tenant_that_nobody_is_of_is_refused(
    folder: Path, command: tuple[str, ...], tenants: list[str], more: tuple[str, ...], line: str
) -> None:
    result = _run(folder, command[0], tenants, *command[1:], *more, "--tenant", "rde=2")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [f"error: --tenant: no job that is simulated is of 'rde'; {line}"]


def test_a_tenant_that_has_jobs_is_taken_and_others_need_not_be_named(folder: Path) -> None:
    result = _run(folder, "simulate", ["red", "blue", ""], "--policy", "hierarchical", "--tenant", "red=2", "--json")
    assert result.exit_code == 0, result.output
