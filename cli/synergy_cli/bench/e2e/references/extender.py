"""`python -m ... HOST PORT TLS-FOLDER KUBECONFIG`: lets the node pass that a pod's annotation names, posts the Binding.

It speaks the same TLS with the same client certificate as the product, and knows nothing of jobs, plans or room.
"""

import ssl
import sys
from pathlib import Path

import msgspec
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from synergy_api.names import ANNOTATION_PLANNED_NODE
from synergy_extender.verbs.wire import BindingArgs, BindingResult, ExtenderArgs, FilterResult
from synergy_kube import KubeClient
from synergy_kube.resources import PODS

_ARGS = msgspec.json.Decoder(ExtenderArgs)
_BINDING = msgspec.json.Decoder(BindingArgs)


def _app(kube: KubeClient) -> Starlette:
    async def choose(request: Request) -> Response:
        args = _ARGS.decode(await request.body())
        return _json(FilterResult(node_names=[(args.pod.metadata.annotations or {})[ANNOTATION_PLANNED_NODE]]))

    async def bind(request: Request) -> Response:
        args = _BINDING.decode(await request.body())
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": args.pod_name, "namespace": args.pod_namespace, "uid": args.pod_uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": args.node},
        }
        await kube.create_subresource(PODS, args.pod_name, "binding", body, args.pod_namespace)
        return _json(BindingResult())

    return Starlette(routes=[Route("/filter", choose, methods=["POST"]), Route("/bind", bind, methods=["POST"])])


def _json(answer: object) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")


async def _serve(host: str, port: int, tls: Path, kubeconfig: str) -> None:
    async with await KubeClient.connect(kubeconfig) as kube:
        config = uvicorn.Config(
            _app(kube),
            host=host,
            port=port,
            ssl_certfile=tls / "tls.crt",
            ssl_keyfile=tls / "tls.key",
            ssl_ca_certs=str(tls / "ca.crt"),
            ssl_cert_reqs=ssl.CERT_REQUIRED,
            lifespan="off",
            log_level="warning",
            access_log=False,
        )
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]))
