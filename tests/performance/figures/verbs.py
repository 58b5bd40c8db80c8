"""Requests of kube-scheduler, beside reading their JSON."""

import json

import msgspec

from performance.case import Case
from synergy_cli.bench.verbs import request_body
from synergy_extender.verbs import wire


def filter_decode(names: int) -> Case:
    """A filter request with so many node names."""
    body = request_body("names", names)
    decoder = msgspec.json.Decoder(wire.ExtenderArgs)
    return Case(lambda: wire.offered_nodes(decoder.decode(body)), lambda: json.loads(body))
