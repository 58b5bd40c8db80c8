"""What the API server checks in a TrainingJob's pod template: it refuses at once a job that cannot train.

Only what is needed to name the mistake is declared; every other field of a PodTemplateSpec is kept as it is and checked
by the API server when the operator makes the pods.
"""

from typing import Any, Final

_TRAINS: Final = "spec.template.spec.containers[0]"
_KEEP: Final[dict[str, Any]] = {"x-kubernetes-preserve-unknown-fields": True}

_CONTAINER: Final[dict[str, Any]] = {
    "type": "object",
    "description": "A container of the worker pod.",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 63, "description": "Name of the container."},
        "image": {"type": "string", "maxLength": 4096, "description": "Image of the container."},
        "command": {
            "type": "array",
            "maxItems": 1024,
            "items": {"type": "string", "maxLength": 131072},
            "description": "Command to run, with no shell around it; arguments may also stand in args.",
        },
    },
    **_KEEP,
}
_CONTAINERS: Final[dict[str, Any]] = {
    "type": "array",
    "description": "Containers of the worker pod. The first one trains and must have an image and a command.",
    "minItems": 1,
    "maxItems": 32,
    "items": _CONTAINER,
    "x-kubernetes-validations": [
        {
            "rule": "has(self[0].image) && self[0].image.size() > 0",
            "message": f"{_TRAINS}.image is required: the first container trains",
        },
    ],
}
COMMAND_RULE: Final[dict[str, Any]] = {
    "rule": "has(self.managed) || has(self.template.spec.containers[0].command) && "
    "self.template.spec.containers[0].command.size() > 0",
    "message": f"{_TRAINS}.command is required: the profile runs start the training by its command",
    "fieldPath": ".template",
}
TEMPLATE_SCHEMA: Final[dict[str, Any]] = {
    "required": ["spec"],
    "properties": {
        "metadata": {"type": "object", "description": "Labels and annotations of the worker pods.", **_KEEP},
        "spec": {
            "type": "object",
            "description": "PodSpec of the worker pods.",
            "required": ["containers"],
            "properties": {"containers": _CONTAINERS},
            **_KEEP,
        },
    },
    **_KEEP,
}

_DEEPEST: Final = 100


def depth_problem(template: Any) -> str:
    """What is wrong with a template that is nested deeper than anything in a pod, empty where nothing is. Copying,
    comparing or writing such an object would exhaust Python's stack."""
    level = [template]
    for _ in range(_DEEPEST):
        parts = (node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list))
        level = [child for children in parts for child in children]
        if not level:
            return ""
    return f"spec.template: its fields are nested more than {_DEEPEST} levels deep"
