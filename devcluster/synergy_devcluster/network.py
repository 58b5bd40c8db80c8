"""The cluster's network on this machine, and the rules that keep every packet of it on this machine.

One bridge carries all pods. Its address is the real node's address, the DNS server and the way to the API server. The
service range and the whole pod range are routed to the bridge: packets to an unused address end there. A firewall table
of our own, which no rule of kube-proxy's can override, rejects what would leave by another interface and what comes in
from one.
"""

import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.programs.commands import run

BRIDGE = "ksdev0"
POD_RANGE = "10.244.0.0/16"
SERVICE_RANGE = "10.96.0.0/16"
NODE_ADDRESS = "10.244.0.1"
API_SERVICE_ADDRESS = "10.96.0.1"
FAKE_PODS = "10.244.128.0/17"
TABLE = "ksdev"
PORTS = (2379, 2380, 6443, 10247, 10248, 10249, 10250, 10251, 10252, 10254, 10255, 10256, 10257, 10259)
KUBERNETES_CHAINS = "KUBE-"
SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/bridge/bridge-nf-call-iptables": "1",
    # changed by kubelet and kube-proxy; recorded so that down can set them back
    "net/ipv4/conf/all/route_localnet": None,
    "vm/overcommit_memory": None,
    "kernel/panic": None,
    "kernel/panic_on_oops": None,
}
_BRIDGE_RULE = ("-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT")
_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104  compared with, not bound
_GUARD = f"""
table inet {TABLE} {{
  chain input {{
    type filter hook input priority filter - 10; policy accept;
    iifname {{ "lo", "{BRIDGE}" }} accept
    tcp dport {{ 2379-2380, 6443, 10247-10259 }} reject with tcp reset
    ip daddr {{ {POD_RANGE}, {SERVICE_RANGE} }} reject
  }}
  chain forward {{
    type filter hook forward priority filter - 10; policy accept;
    iifname "{BRIDGE}" oifname != "{BRIDGE}" reject
    iifname != "{BRIDGE}" oifname "{BRIDGE}" reject
  }}
  chain output {{
    type filter hook output priority filter - 10; policy accept;
    oifname {{ "lo", "{BRIDGE}" }} accept
    ip daddr {{ {POD_RANGE}, {SERVICE_RANGE} }} reject
    ct original ip daddr {{ {POD_RANGE}, {SERVICE_RANGE} }} reject
  }}
}}
"""


def check_free() -> None:
    """Refuse a machine on which another cluster's network, or one of our ranges, is in use already.

    Raises:
        DevclusterError: it names the interface, route or chain that is in the way.
    """
    if chains := _kubernetes_chains():
        raise DevclusterError(f"another kube-proxy's rules are on this machine ({chains[0]}): stop that cluster first")
    for link in _ip("addr"):
        for address in link.get("addr_info", []):
            for ours in (POD_RANGE, SERVICE_RANGE):
                own = ipaddress.ip_network(ours)
                if address["family"] == "inet" and ipaddress.ip_address(address["local"]) in own:
                    raise DevclusterError(
                        f"interface {link['ifname']} has {address['local']}, inside {ours} that the devcluster needs"
                    )
    for port in PORTS:
        if holder := listener(port):
            raise DevclusterError(f"port {port} is in use by {holder}: the devcluster needs it, stop that program")


def listener(port: int) -> str | None:
    """Return in words who listens on a port of loopback or of every address; None when nobody does."""
    for connection in psutil.net_connections("tcp"):
        if connection.status != psutil.CONN_LISTEN or not connection.laddr or connection.laddr.port != port:
            continue
        if ipaddress.ip_address(connection.laddr.ip).is_loopback or connection.laddr.ip in _EVERY_ADDRESS:
            return f"pid {connection.pid} ({psutil.Process(connection.pid).name()})" if connection.pid else "somebody"
    return None


def load_kernel_modules() -> None:
    """Let the kernel filter what crosses a bridge, which services between pods of one node need.

    Raises:
        DevclusterError: the kernel has no such module.
    """
    if not _sysctl("net/bridge/bridge-nf-call-iptables").exists():
        run(["modprobe", "br_netfilter"])


def read_sysctls() -> dict[str, str]:
    """Return the present values of every kernel setting the cluster changes."""
    return {name: _sysctl(name).read_text(encoding="utf-8").strip() for name in SYSCTLS if _sysctl(name).exists()}


def set_up(node_addresses: Sequence[str]) -> str:
    """Make the firewall table, the bridge and the routes. Nothing of the cluster may start before this is done.

    Returns:
        The firewall table as the kernel lists it, for :func:`broken_rules`.
    """
    run(["nft", "-f", "-"], text_in=_GUARD)
    run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    for address in node_addresses:
        run(["ip", "addr", "add", f"{address}/{ipaddress.ip_network(POD_RANGE).prefixlen}", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])
    run(["ip", "route", "add", SERVICE_RANGE, "dev", BRIDGE])
    # where another program, such as Docker, has set the policy of FORWARD to DROP
    run(["iptables", "--wait", "--insert", "FORWARD", "1", *_BRIDGE_RULE])
    for name, value in SYSCTLS.items():
        if value is not None:
            _write_sysctl(name, value)
    return _listed_table()


def tear_down(sysctls: dict[str, str]) -> None:
    """Delete kube-proxy's chains, the bridge with its routes, the firewall table, and set kernel settings back."""
    for command in ("iptables", "ip6tables"):
        saved = run([f"{command}-save"]).splitlines()
        kept = [
            line for line in saved if KUBERNETES_CHAINS not in line and line != f"-A FORWARD {' '.join(_BRIDGE_RULE)}"
        ]
        if kept != saved:
            run([f"{command}-restore", "--wait"], text_in="\n".join(kept) + "\n")
    for link in _ip("link"):
        if link["ifname"] == BRIDGE or link.get("master") == BRIDGE:
            run(["ip", "link", "delete", link["ifname"]])
    for name, value in sysctls.items():
        if name in SYSCTLS:
            _write_sysctl(name, value)
    if _listed_table():
        run(["nft", "delete", "table", "inet", TABLE])


def broken_rules(listed_at_start: str) -> list[str]:
    """Return, in words, each rule that should keep traffic on the machine and is not in force."""
    routes = {route["dst"]: route.get("dev") for route in _ip("route")}
    problems = [
        f"{target} is not routed to {BRIDGE}" for target in (POD_RANGE, SERVICE_RANGE) if routes.get(target) != BRIDGE
    ]
    if _listed_table() != listed_at_start:
        problems.append(f"the firewall table inet {TABLE} is not as up made it")
    return problems


def leftovers() -> list[str]:
    """Return what of the network is still on the machine, in words; empty after a clean ``down``."""
    found = [f"interface {link['ifname']}" for link in _ip("link") if link["ifname"] == BRIDGE]
    if _listed_table():
        found.append(f"firewall table inet {TABLE}")
    if f"-A FORWARD {' '.join(_BRIDGE_RULE)}" in run(["iptables-save"]).splitlines():
        found.append("the bridge's rule in FORWARD")
    return found + _kubernetes_chains()


def _kubernetes_chains() -> list[str]:
    return [
        f"{command} chain {line.split()[0][1:]}"
        for command in ("iptables", "ip6tables")
        for line in run([f"{command}-save"]).splitlines()
        if line.startswith(f":{KUBERNETES_CHAINS}")
    ]


def _listed_table() -> str:
    if f"table inet {TABLE}" not in run(["nft", "list", "tables"]).splitlines():
        return ""
    return run(["nft", "list", "table", "inet", TABLE])


def _ip(what: str) -> list[dict[str, Any]]:
    value: list[dict[str, Any]] = json.loads(run(["ip", "-json", "-details", what]) or "[]")
    return value


def _sysctl(name: str) -> Path:
    return Path("/proc/sys") / name


def _write_sysctl(name: str, value: str) -> None:
    path = _sysctl(name)
    if path.read_text(encoding="utf-8").strip() != value:
        path.write_text(value, encoding="utf-8")
