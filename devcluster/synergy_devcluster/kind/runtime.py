#!/usr/bin/python3 -IS
"""runc for machines that lack capabilities: a container gets those of the machine, and its own importance to the
out-of-memory killer stays. Without this, a privileged container does not start there.

dockerd runs a copy of this file as its runtime, with the system's Python.
"""

import json
import os
import sys
from typing import Any

_NAMES = """
chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service
net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin
sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override
mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore
"""
"""By their number in the kernel."""


def allowed(status: str) -> set[str]:
    """The names of the capabilities in the bounding set of a /proc/PID/status."""
    (bits,) = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapBnd:")]
    return {f"CAP_{name.upper()}" for number, name in enumerate(_NAMES.split()) if bits >> number & 1}


def trim(process: dict[str, Any], kept: set[str]) -> None:
    """Take from a process of the OCI's format what this machine cannot give."""
    for names in (process.get("capabilities") or {}).values():
        names[:] = [name for name in names if name in kept]
    if "CAP_SYS_RESOURCE" not in kept:
        process.pop("oomScoreAdj", None)
        process.pop("rlimits", None)


def _trim_file(path: str, kept: set[str], key: str | None) -> None:
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    trim(content[key] if key else content, kept)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


def main(arguments: list[str]) -> None:
    """Become runc with the same arguments."""
    with open("/proc/self/status", encoding="utf-8") as file:
        kept = allowed(file.read())
    for index, word in enumerate(arguments[:-1]):
        if word == "--bundle":
            _trim_file(os.path.join(arguments[index + 1], "config.json"), kept, "process")
        elif word == "--process":
            _trim_file(arguments[index + 1], kept, None)
    os.execvp("runc", ["runc", *arguments])  # noqa: S606  no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
