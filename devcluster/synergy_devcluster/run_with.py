"""A command beside a devcluster: the one that runs, or one that is there only for it."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from synergy_devcluster import cluster as clusters
from synergy_devcluster.cluster import Cluster
from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.options import Options
from synergy_devcluster.paths import Paths

_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def at_hand(options: Options, *, paths: Paths | None = None, report: Callable[[str], None]) -> Iterator[Cluster]:
    """The devcluster that runs, whatever its options, left running; else a new one of these options, taken down after.

    Raises:
        DevclusterError: it does not come up.
    """
    place = paths or Paths.of()
    try:
        running = clusters.connect(place)
    except DevclusterError:
        try:
            yield clusters.up(options, report=report, paths=place)
        finally:
            clusters.down(report=report, paths=place)
    else:
        yield running


@contextmanager
def alone(options: Options, *, paths: Paths | None = None, report: Callable[[str], None]) -> Iterator[Cluster]:
    """A new devcluster for one that breaks it, taken down after.

    Raises:
        BadInputError: there is one already, which is somebody else's.
        DevclusterError: it does not come up.
    """
    place = paths or Paths.of()
    if place.state_file.exists():
        down = f"kube-synergy devcluster --name {place.state.name} down"
        raise BadInputError(f"a devcluster is here already: take it down first ('{down}')")
    try:
        yield clusters.up(options, report=report, paths=place)
    finally:
        clusters.down(report=report, paths=place)


def run_with(options: Options, command: Sequence[str], *, paths: Paths, report: Callable[[str], None]) -> int:
    """Run the command with KUBECONFIG set, on the devcluster of `at_hand`; its exit status, 128 + N after signal N.

    A signal that asks us to end is passed on, and the devcluster goes after the command has.

    Raises:
        DevclusterError: the devcluster does not come up.
        BadInputError: there is no such command.
    """
    with at_hand(options, paths=paths, report=report) as cluster, _signals() as pass_on_to:
        environ = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
        try:
            process = subprocess.Popen(command, env=environ)
        except OSError as error:
            raise BadInputError(f"{command[0]}: {error.strerror}") from error
        pass_on_to(process)
        code = process.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Catches the signals that ask us to end, and yields what names the process to which they go, early ones too."""
    target: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def caught(number: int, _: FrameType | None) -> None:
        if target:
            target[0].send_signal(number)
        else:
            early.append(number)

    def pass_on_to(process: subprocess.Popen[bytes]) -> None:
        target.append(process)
        for number in early:
            process.send_signal(number)

    before = {number: signal.signal(number, caught) for number in _ENDS}
    try:
        yield pass_on_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
