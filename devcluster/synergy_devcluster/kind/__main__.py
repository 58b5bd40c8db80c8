"""`python3 -m synergy_devcluster.kind node-image | prepare | docker | env | down`."""

import shlex
import sys

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.kind import node_image
from synergy_devcluster.kind.docker import OwnDocker
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs.toolchain import kind_module, locate, modules


def main(arguments: list[str]) -> int:
    """Build the node image and say how to use it, get all that needs a network or Docker alone, print what a shell
    needs to use the project's own Docker, or end it with the clusters in it."""
    try:
        match arguments:
            case ["node-image"]:
                archive = node_image.build(print)
                print(  # noqa: T201
                    f"docker load --input {archive}\n"
                    f"kind create cluster --config kind-config.yaml --image {node_image.tag()}"
                )
            case ["prepare"]:
                node_image.build(print)
                locate(Paths.of(), print, wanted=(kind_module(),))
                OwnDocker.of().fetch(print)
            case ["docker"]:
                OwnDocker.of().fetch(print)
            case ["env"]:
                print("\n".join(_exports(Paths.of())))  # noqa: T201
            case ["down"]:
                OwnDocker.of().end()
            case _:
                print(__doc__, file=sys.stderr)  # noqa: T201
                return 2
    except DevclusterError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _exports(paths: Paths) -> list[str]:
    """Shell commands, after which `kubectl`, `kind` and `docker` use the project's own Docker and its cluster."""
    docker = OwnDocker.of(paths)
    programs = locate(paths, wanted=(*modules(), kind_module()))
    folders = dict.fromkeys((docker.client.parent, programs["kind"].parent, programs["kubectl"].parent))
    return [
        f"export PATH={shlex.quote(':'.join(map(str, folders)))}:$PATH",
        f"export DOCKER_HOST={docker.environment['DOCKER_HOST']}",
        f"export KUBECONFIG={shlex.quote(str(paths.cache / 'kind.kubeconfig'))}",
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
