"""The state file and the components that live in it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from synergy_devcluster.control_plane import components
from synergy_devcluster.control_plane.components import Component
from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.options import Options, parse_fake_nodes
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import processes
from synergy_devcluster.programs.processes import ProcessId
from synergy_devcluster.state import ComponentRecord, State, StateFile, boot_id


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """The folders of a cluster that nothing else uses."""
    made = Paths(tmp_path / "state", tmp_path / "run", "/unused", tmp_path / "cache")
    made.logs.mkdir(parents=True)
    return made


@pytest.fixture
def file(paths: Paths) -> Iterator[StateFile]:
    """The state file of a cluster that is starting; its processes are ended afterwards."""
    state_file = StateFile.of(paths)
    state_file.save(State(Options(fake_nodes=parse_fake_nodes("T4=2x4")), {"etcd": "/bin/etcd"}, boot_id()))
    yield state_file
    state = state_file.load()
    assert state
    processes.end([record.process for record in state.components.values() if record.process], 0)


def test_what_is_written_is_read_back(file: StateFile) -> None:
    written = file.load()
    assert written
    written.holders["node"] = ProcessId(1, 2)
    written.components["etcd"] = ComponentRecord(["etcd", "--x"], "/log", ProcessId(3, 4))
    file.save(written)
    assert file.load() == written


def test_no_file_means_no_cluster(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state.json", tmp_path / "lock")
    assert file.load() is None
    with pytest.raises(DevclusterError, match="no devcluster is here"), file.change():
        pass


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "options": {}}'])
def test_a_damaged_file_is_refused_by_name(file: StateFile, text: str) -> None:
    good = file.path.read_text()
    file.path.write_text(text)
    with pytest.raises(DevclusterError, match="not a devcluster state file") as refused:
        file.load()
    assert str(file.path) in str(refused.value)
    file.path.write_text(good)


def test_another_versions_file_is_refused(file: StateFile) -> None:
    good = file.path.read_text()
    file.path.write_text(json.dumps({**json.loads(good), "format": 0}))
    with pytest.raises(DevclusterError, match="another version"):
        file.load()
    file.path.write_text(good)


def test_a_change_is_kept_when_its_maker_fails(file: StateFile) -> None:
    with pytest.raises(RuntimeError), file.change() as state:  # noqa: PT012  the change before the failure is the point
        state.phase = "running"
        raise RuntimeError
    after = file.load()
    assert after
    assert after.phase == "running"


def test_a_cluster_is_usable_while_its_holder_lives_in_this_boot(file: StateFile, tmp_path: Path) -> None:
    state = file.load()
    assert state
    assert not state.usable(), "it is still starting"
    holder = processes.spawn(["sleep", "60"], tmp_path / "log", {})
    running = replace(state, phase="running", holders={"node": holder})
    assert running.usable()
    assert not replace(running, boot_id="another boot").usable()
    processes.end([holder], 0)
    assert not running.usable()


def test_a_component_is_started_stopped_and_started_again(file: StateFile, paths: Paths) -> None:
    component = components.add(file, paths, "sleeper", ["sleep", "60"])
    first = component.process
    assert component.alive()
    component.start()
    assert component.process == first, "starting what runs changes nothing"
    component.kill()
    assert not component.alive()
    component.restart()
    assert component.alive()
    assert component.process != first


def test_a_component_is_seen_the_same_by_every_reader(file: StateFile, paths: Paths) -> None:
    mine = components.add(file, paths, "sleeper", ["sleep", "60"])
    theirs = Component("sleeper", StateFile.of(paths))
    theirs.restart()
    assert mine.process == theirs.process
    assert mine.alive()


def test_a_paused_component_is_stopped_and_goes_on(file: StateFile, paths: Paths) -> None:
    component = components.add(file, paths, "sleeper", ["sleep", "60"])
    assert component.process

    def state_letter() -> str:
        text = Path(f"/proc/{component.process.pid if component.process else 0}/stat").read_text()
        return text.rpartition(")")[2].split()[0]

    component.pause()
    assert processes.wait_for(lambda: state_letter() == "T", 5)
    assert component.alive()
    component.resume()
    assert processes.wait_for(lambda: state_letter() == "S", 5)


def test_pausing_what_has_ended_is_an_error(file: StateFile, paths: Paths) -> None:
    component = components.add(file, paths, "short", ["true"])
    assert processes.wait_for(lambda: not component.alive(), 5)
    with pytest.raises(DevclusterError, match="short is not running"):
        component.pause()


def test_the_log_tail_shows_why_it_ended(file: StateFile, paths: Paths) -> None:
    component = components.add(file, paths, "failing", ["sh", "-c", "echo one; echo two >&2; exit 3"])
    assert processes.wait_for(lambda: not component.alive(), 5)
    assert component.log_tail(1) == ["two"]


def test_an_unknown_component_is_refused_with_the_known_names(file: StateFile, paths: Paths) -> None:
    components.add(file, paths, "sleeper", ["sleep", "60"])
    with pytest.raises(BadInputError, match="no component 'sleper': use one of sleeper"):
        Component("sleper", file).start()


def test_an_option_that_is_set_holds_from_the_next_start_on(file: StateFile, paths: Paths) -> None:
    component = components.add(file, paths, "shell", ["sh", "-c", "echo $1; sleep 60", "x", "--where=here"])
    assert processes.wait_for(lambda: component.log_tail(1) == ["--where=here"], 5)
    assert component.set_option("where", "there") == "here"
    component.restart()
    assert processes.wait_for(lambda: component.log_tail(1) == ["--where=there"], 5)
    with pytest.raises(BadInputError, match="shell has no option --when"):
        component.set_option("when", "now")
