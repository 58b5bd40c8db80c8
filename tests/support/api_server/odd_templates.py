"""Pod templates with something odd in one place: what the API server lets pass in a TrainingJob, since it does not know
the template's fields."""

import copy
from typing import Any

from hypothesis import strategies as st

Json = Any

_TERM = {
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
_FULL: dict[str, Json] = {
    "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "kept"}},
    "spec": {
        "containers": [
            {
                "name": "train",
                "image": "example/train:1",
                "command": ["python3", "train.py"],
                "args": ["--fast"],
                "env": [{"name": "A", "value": "1"}],
                "envFrom": [{"configMapRef": {"name": "c"}}],
                "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi", "nvidia.com/gpu": "1"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
                "terminationMessagePath": "/tmp/message",
            },
            {"name": "side", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}},
        ],
        "initContainers": [
            {"name": "proxy", "image": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": "100m"}}},
            {"name": "fetch", "image": "i", "resources": {"requests": {"memory": "1Gi"}}},
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
        "nodeSelector": {"zone": "a"},
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}}
        },
        "schedulingGates": [{"name": "mine"}],
        "schedulerName": "kube-synergy",
        "restartPolicy": "Never",
        "priorityClassName": "low",
        "hostname": "h",
        "resources": {"requests": {"cpu": "1"}},
        "terminationGracePeriodSeconds": 30,
    },
}
_ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.floats(-1, 1),
    st.sampled_from(["", "x", "1", "-1", "lots", "9E", "1e99999999", "7" * 5000]),
    st.lists(st.one_of(st.none(), st.integers(0, 1), st.just("x"), st.just({}), st.just([])), max_size=2),
    st.dictionaries(st.sampled_from(["name", "cpu", "x"]), st.one_of(st.none(), st.just(1), st.just("x")), max_size=2),
)


def _paths(node: Json, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    found = [above] if above else []
    for key, child in entries:
        found += _paths(child, (*above, key))
    return found


_ALL = _paths(_FULL)
_PATHS = st.one_of(st.sampled_from([path for path in _ALL if len(path) < 3]), st.sampled_from(_ALL))
"""The large parts are replaced as often as all the small ones together."""


@st.composite
def odd_templates(draw: st.DrawFn) -> dict[str, Json]:
    """A template that the schema of TrainingJobs admits, with one to three of its values replaced by something odd."""
    template = copy.deepcopy(_FULL)
    for path in draw(st.lists(_PATHS, min_size=1, max_size=3)):
        node: Json = template
        try:
            for key in path[:-1]:
                node = node[key]
            # a copy: `just` gives the same object each time, and a later path may write to it
            node[path[-1]] = copy.deepcopy(draw(_ODD))
        except (KeyError, IndexError, TypeError):
            continue  # what was replaced before is no longer there
    return template if _admitted(template) else copy.deepcopy(_FULL)


def _admitted(template: Json) -> bool:
    """What `synergy_api.parts.template` asks of a template before it is stored."""
    spec = template.get("spec")
    if not isinstance(spec, dict) or not isinstance(template.get("metadata", {}), dict):
        return False
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers or not all(isinstance(c, dict) for c in containers):
        return False
    first = containers[0]
    command = first.get("command")
    named = all(isinstance(c.get("name"), str) and c["name"] for c in containers)
    commanded = isinstance(command, list) and command and all(isinstance(word, str) for word in command)
    return bool(named and commanded and isinstance(first.get("image"), str) and first["image"])
