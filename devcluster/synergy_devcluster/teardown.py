"""End and remove exactly what a devcluster started and made, from its state file."""

import os
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil

from synergy_devcluster import network
from synergy_devcluster.node import node
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import processes
from synergy_devcluster.programs.processes import ProcessId
from synergy_devcluster.state import State, StateFile
from synergy_devcluster.steps import Steps

LAST = ("etcd", "kube-apiserver", "containerd")
"""What the other components talk to: killed when no component needs it any more."""


def tear_down(paths: Paths, state: State, steps: Steps) -> None:
    """Take a cluster down, whole or half made. It may be interrupted and run again at any point."""
    state.phase = "stopping"
    StateFile.of(paths).save(state)
    if state.this_boot():
        with steps.step("components stopped"):
            _end_components(state)
        with steps.step("containers and mounts gone"):
            _end_rest(paths, state)
        with steps.step("network removed"):
            network.tear_down(state.sysctls)
    with steps.step("files removed"):
        remove_cgroups(paths.cgroup)
        _remove_files(paths, state)


def _end_components(state: State) -> None:
    """Stop the controllers and the kubelet before the components that they talk to: none can then restart anything."""
    others = [record.process for name, record in state.components.items() if not name.startswith(LAST)]
    processes.end([process for process in others if process], 3)


def _end_rest(paths: Paths, state: State) -> None:
    """Kill containers, their shims, and every process that carries this cluster's mark.

    The mark finds what a killed ``up`` started but had no time to record. A node's mounts go with
    the last process of its mount namespace.
    """
    for _ in range(5):
        left = [*processes.in_cgroup(paths.cgroup), *processes.marked(state.instance), *_recorded(state)]
        if not left:
            return
        processes.end(set(left), 0)


def _recorded(state: State) -> list[ProcessId]:
    started = [record.process for record in state.components.values() if record.process]
    return [process for process in [*started, *state.holders.values()] if process.alive()]


def remove_cgroups(cgroup: str) -> None:
    """Remove a control group and all below it, in every hierarchy; none of them has a process any more."""
    for top in node.cgroup_folders(cgroup):
        for folder, _, _ in os.walk(top, topdown=False):
            processes.wait_for(partial(_removed, folder), 3, 0.02)


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _remove_files(paths: Paths, state: State) -> None:
    shutil.rmtree(paths.run, ignore_errors=True)
    for folder in set(state.made_folders) - _mount_points_anywhere():
        with suppress(OSError):
            Path(folder).rmdir()
    # the state file goes last: while it is there, the next up or down knows that there is work left
    for entry in paths.state.iterdir():
        if entry != paths.state_file:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    paths.state_file.unlink()
    paths.state.rmdir()


def _mount_points_anywhere() -> set[str]:
    """Return the mount points of every mount namespace: removing such a folder would unmount it there."""
    seen: set[str] = set()
    points: set[str] = set()
    for process in psutil.pids():
        with suppress(OSError):
            namespace = os.readlink(f"/proc/{process}/ns/mnt")
            if namespace not in seen:
                lines = Path(f"/proc/{process}/mountinfo").read_text(encoding="utf-8").splitlines()
                points |= {line.split()[4] for line in lines}
                seen.add(namespace)
    return points


def leftovers(paths: Paths) -> list[str]:
    """Return what is on the machine that a ``down`` should have removed, in words."""
    found = network.leftovers()
    found += [f"folder {folder}" for folder in (paths.state, paths.run) if folder.exists()]
    found += [f"cgroup {folder}" for folder in node.cgroup_folders(paths.cgroup) if folder.exists()]
    found += [f"process {process.pid} in {paths.cgroup}" for process in processes.in_cgroup(paths.cgroup)]
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    found += [f"mount {line.split()[1]}" for line in mounts if str(paths.state) in line or str(paths.run) in line]
    return found
