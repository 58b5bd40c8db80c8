"""What the pod's own RDMA devices have sent, by their ports' counters in sysfs.

A device is the pod's own if its container has the device's node and the device is a virtual function: device plugins
give each to one pod. A physical one serves all pods of the node, so its counters tell nothing of one job.
"""

from __future__ import annotations

import os
from contextlib import suppress

_SYS = "/sys/class"
_DEV = "/dev/infiniband"
_WORD_BYTES = 4
"""`port_xmit_data` counts words of four bytes (the kernel's sysfs-class-infiniband)."""


def sent_bytes(sys: str = _SYS, dev: str = _DEV) -> dict[str, int]:
    """Of each port of each own device since the device was made; empty where there is none or none that counts."""
    found = {}
    for device in _own_devices(sys, dev):
        ports = os.path.join(sys, "infiniband", device, "ports")
        for port in _names(ports):
            with suppress(OSError, ValueError):
                words = _text(os.path.join(ports, port, "counters", "port_xmit_data"))
                found[f"{device}/{port}"] = int(words) * _WORD_BYTES
    return found


def _own_devices(sys: str, dev: str) -> list[str]:
    """Names of the devices. Each node `uverbsN` has the name of its device in `ibdev`."""
    found = []
    for node in _names(dev):
        with suppress(OSError):
            device = _text(os.path.join(sys, "infiniband_verbs", node, "ibdev")).strip()
            if os.path.exists(os.path.join(sys, "infiniband", device, "device", "physfn")):
                found.append(device)
    return sorted(found)


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
