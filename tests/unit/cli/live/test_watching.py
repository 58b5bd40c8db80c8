"""`--watch`: what it costs the API server, and what it shows."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.api_server.list_server import ListServer, serving
from support.extender.cluster import job_object, node_object
from synergy_cli.live import watching
from synergy_cli.live.access import Cluster, Where
from synergy_cli.main import main


@pytest.fixture
def server() -> ListServer:
    return ListServer(trainingjobs=[job_object("a")], nodes=[node_object("n1")], gpupools=[], tenants=[])


@pytest.fixture
def kubeconfig(server: ListServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(watching, "LEAST_S", 0.01)
    monkeypatch.setattr(watching, "IDLE", 0.0)
    with serving(server, tmp_path) as file:
        yield file


async def _names(cluster: Cluster) -> list[str]:
    return [job.full_name for job in await cluster.jobs(None)]


@pytest.mark.parametrize(
    ("command", "collections"),
    [
        (["queue"], ["trainingjobs"]),
        (["queue", "-A"], ["trainingjobs"]),
        (["top"], ["trainingjobs", "nodes", "gpupools"]),
        (["tenants"], ["tenants"]),
    ],
)
def test_collections_are_listed_once(
    server: ListServer,
    kubeconfig: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    collections: list[str],
) -> None:
    turns = []

    def clear() -> None:
        turns.append(len(turns))
        if len(turns) > 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(watching.click, "clear", clear)
    done = CliRunner().invoke(main, [*command, "--watch", "--kubeconfig", str(kubeconfig)])
    assert done.exit_code == 0, done.output
    assert len(turns) == 6
    assert server.lists == dict.fromkeys(collections, 1)


def test_changes_come_by_the_watch(server: ListServer, kubeconfig: Path) -> None:
    changes = server.changes["trainingjobs"]
    seen: list[list[str]] = []

    def write(names: list[str]) -> None:
        if not seen or seen[-1] != names:
            seen.append(names)
            if len(seen) == 1:
                changes.put({"type": "ADDED", "object": job_object("0")})
            elif len(seen) == 2:
                changes.put({"type": "DELETED", "object": job_object("a")})
            else:
                raise KeyboardInterrupt

    watching.answer(Where(str(kubeconfig), None, "team"), _names, write, watch=True)
    assert seen == [["team/a"], ["team/0", "team/a"], ["team/0"]]
    assert server.lists == {"trainingjobs": 1}


def test_a_user_who_may_only_list_sees_changes_too_and_nothing_else(
    server: ListServer, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as in the program, which configures no logging
    server.watched = False
    seen: list[list[str]] = []

    def write(names: list[str]) -> None:
        if not seen or seen[-1] != names:
            seen.append(names)
            server.objects["trainingjobs"] = [job_object("b")]
            if len(seen) == 2:
                raise KeyboardInterrupt

    watching.answer(Where(str(kubeconfig), None, "team"), _names, write, watch=True)
    assert seen == [["team/a"], ["team/b"]]
    assert capsys.readouterr().err == ""


def test_a_job_that_cannot_be_read_is_told_at_each_turn(
    server: ListServer, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.objects["trainingjobs"].append(job_object("odd", spec={"gpus": "many"}))
    turns: list[list[str]] = []

    def write(names: list[str]) -> None:
        turns.append(names)
        if len(turns) == 3:
            raise KeyboardInterrupt

    watching.answer(Where(str(kubeconfig), None, "team"), _names, write, watch=True)
    assert turns == [["team/a"]] * 3
    assert capsys.readouterr().err.count("team/odd is left out") == 3


def test_what_a_user_may_not_list_is_left_out(server: ListServer, kubeconfig: Path) -> None:
    server.hidden = {"nodes"}
    server.elsewhere = {"trainingjobs"}
    done = CliRunner().invoke(main, ["top", "--kubeconfig", str(kubeconfig)])
    turns: list[str] = []

    with pytest.MonkeyPatch.context() as patched:

        def clear() -> None:
            turns.append("")
            if len(turns) > 2:
                raise KeyboardInterrupt

        patched.setattr(watching.click, "clear", clear)
        watched = CliRunner().invoke(main, ["top", "--watch", "--kubeconfig", str(kubeconfig)])
    assert (watched.stdout, watched.stderr) == (2 * done.stdout, 2 * done.stderr)


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.0, 2.0), (0.1, 2.0), (3.0, 15.0)])
def test_who_may_only_list_takes_a_part_of_the_api_server_only(took_s: float, pause_s: float) -> None:
    assert watching.pause_s(took_s) == pytest.approx(pause_s)


def test_without_watch_it_is_asked_once(server: ListServer, kubeconfig: Path) -> None:
    seen: list[list[str]] = []
    watching.answer(Where(str(kubeconfig), None, "team"), _names, seen.append, watch=False)
    assert seen == [["team/a"]]
    assert server.lists == {"trainingjobs": 1}
