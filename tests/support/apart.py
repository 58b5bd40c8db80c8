"""`python -m support.apart COMMAND...`: run a command in a network namespace of its own, where the name of a devcluster
of its own holds. There it may bring one up, break it and take it down whatever else runs on this machine."""

import os
import sys

from synergy_devcluster.paths import DEFAULT_NAME, NAME_VARIABLE

NETWORK = (
    "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; ip link set lo up && "
    "ip link add out0 type veth peer name out1 && ip link set out1 up && ip addr add 198.51.100.2/24 dev out0 && "
    "ip link set out0 up && ip route add default via 198.51.100.1 && "
    "ip neigh add 198.51.100.1 lladdr 02:00:00:00:00:01 dev out0"
)
"""Shell: an interface that looks like the way out, and a default route to nowhere."""


def main() -> None:
    """Become the command."""
    name = f"{os.environ.get(NAME_VARIABLE) or DEFAULT_NAME}-apart"
    inside = ["sh", "-c", f'{NETWORK} && exec "$@"', "apart", *sys.argv[1:]]
    os.execvpe("unshare", ["unshare", "--net", "--", *inside], {**os.environ, NAME_VARIABLE: name})


if __name__ == "__main__":
    main()
