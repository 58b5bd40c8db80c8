"""The objects of a job: the TrainingJob, and what it owns, which is its program and the volume of its checkpoints."""

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from kube_synergy.errors import InvalidJobError
from kube_synergy.making.options import JobOptions, checked
from kube_synergy.making.program import Program
from synergy_api.names import ANNOTATION_SCRIPT, MAX_JOB_NAME, SCRIPT_VOLUME
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_kube import Resource
from synergy_kube.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, TRAINING_JOBS

Object = dict[str, Any]
CHECKPOINTS = "/checkpoints"
_FOLDER = "/kube-synergy/script"
_MOST = 900_000
"""Bytes of a program: a ConfigMap holds a mebibyte."""
_RANDOM_END = 6
_JOINED = frozenset({"volumes", "volumeMounts", "env"})


@dataclass(frozen=True, slots=True)
class Submission:
    """A TrainingJob and the objects that it will own."""

    job: Object
    owned: tuple[tuple[Resource, Object], ...] = ()

    @property
    def manifests(self) -> list[Object]:
        """All objects as a YAML file has them."""
        objects = [(TRAINING_JOBS, self.job), *self.owned]
        return [{"apiVersion": one.api_version, "kind": one.kind, **body} for one, body in objects]


def submission_of(program: Program, options: JobOptions) -> Submission:
    """The objects of a job that runs `program`. Raises InvalidJobError."""
    options = checked(options)
    name = options.get("name") or _name_of(program.name)
    size = sum(len(text.encode()) for text in program.files.values())
    if size > _MOST:
        raise InvalidJobError(f"{program.what} has {size} bytes; a ConfigMap holds {_MOST}: put it into the image")
    if not options.get("image"):
        raise InvalidJobError("image: name the image that runs the program")
    owned: list[tuple[Resource, Object]] = [
        (CONFIG_MAPS, {"metadata": {"name": f"{name}-script"}, "data": dict(program.files)})
    ]
    claim = options.get("checkpoints")
    if options.get("checkpoint_storage"):
        if claim:
            raise InvalidJobError("checkpoint_storage: it makes a volume; leave it out, or checkpoints=")
        claim = f"{name}-checkpoints"
        owned.append((PERSISTENT_VOLUME_CLAIMS, _claim(claim, options["checkpoint_storage"])))
    spec = merged(_spec(program, name, claim, options), options.get("spec") or {})
    _check(spec)
    return Submission({"metadata": {"name": name}, "spec": spec}, tuple(owned))


def submission_of_manifest(manifest: Mapping[str, Any]) -> Submission:
    """The TrainingJob that a YAML file has. Raises InvalidJobError where it is another kind of object."""
    kind = manifest.get("kind") if isinstance(manifest, Mapping) else type(manifest).__name__
    if kind != TRAINING_JOBS.kind:
        raise InvalidJobError(f"kind: it is {kind!r}; give a TrainingJob, and create other objects with kubectl apply")
    if not isinstance(manifest.get("metadata"), Mapping):
        raise InvalidJobError("metadata: give the job a name")
    return Submission(dict(manifest))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> Object:
    """`base` with the fields of `over`, which win (`JobOptions.spec`)."""
    found = dict(base)
    for key, value in over.items():
        old = found.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            found[key] = merged(old, value)
        elif key == "containers" and isinstance(old, list) and isinstance(value, list) and value:
            found[key] = [merged(old[0], value[0]), *value[1:]]
        elif key in _JOINED and isinstance(old, list) and isinstance(value, list):
            found[key] = [*old, *value]
        else:
            found[key] = value
    return found


def _spec(program: Program, name: str, claim: str | None, options: JobOptions) -> Object:
    mounts = [{"name": SCRIPT_VOLUME, "mountPath": _FOLDER, "readOnly": True}]
    volumes: list[Object] = [{"name": SCRIPT_VOLUME, "configMap": {"name": f"{name}-script"}}]
    if claim:
        mounts.append({"name": "checkpoints", "mountPath": CHECKPOINTS})
        volumes.append({"name": "checkpoints", "persistentVolumeClaim": {"claimName": claim}})
    metadata = {"annotations": {ANNOTATION_SCRIPT: _hash_of(program)}}
    variables = [{"name": key, "value": value} for key, value in (options.get("env") or {}).items()]
    container = {
        "name": "train",
        "image": options["image"],
        "command": ["python3", f"{_FOLDER}/{program.main}"],
        "volumeMounts": mounts,
        **({"args": list(program.words)} if program.words else {}),
        **({"env": variables} if variables else {}),
    }
    fields: Iterable[tuple[str, Any]] = (
        ("gpus", options.get("gpus", 1)),
        ("steps", options.get("steps")),
        ("epochs", options.get("epochs")),
        ("maxRunSeconds", options.get("max_run_seconds")),
        ("gpuTypes", list(options.get("gpu_types") or ())),
        ("tenant", options.get("tenant")),
        ("after", [{"job": name} for name in options.get("after") or ()]),
        ("array", _array(options)),
        ("profile", {"mode": options["profile"]} if options.get("profile", "Auto") != "Auto" else None),
        ("template", {"metadata": metadata, "spec": {"containers": [container], "volumes": volumes}}),
    )
    return {key: value for key, value in fields if value not in (None, "", [])}


def _hash_of(program: Program) -> str:
    """Equal for programs with the same files: they are measured once."""
    return hashlib.sha256(json.dumps(dict(program.files), sort_keys=True).encode()).hexdigest()


def _array(options: JobOptions) -> Object | None:
    count, most = options.get("array"), options.get("max_parallel")
    if most is not None and count is None:
        raise InvalidJobError("max_parallel: it belongs to array; give both")
    return None if count is None else {"count": count, **({} if most is None else {"maxParallel": most})}


def _claim(name: str, size: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": spec}


def _name_of(program: str) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", program.lower()).strip("-") or "job"
    longest = MAX_JOB_NAME - len("-checkpoints") - _RANDOM_END
    return f"{stem[:longest].strip('-')}-{uuid.uuid4().hex[: _RANDOM_END - 1]}"


def _check(spec: Object) -> None:
    try:
        TrainingJobSpec.model_validate(spec)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"]) or "spec"
        raise InvalidJobError(f"{path}: {first['msg'].removeprefix('Value error, ')}") from None
