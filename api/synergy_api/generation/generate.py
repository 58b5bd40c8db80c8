"""`python -m synergy_api.generation.generate`: writes what is generated from the models and the list of reasons, or
says what is stale.

Needs PyYAML, as every development environment has it; nothing that runs in a cluster imports this module.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from synergy_api.generation.crd import KINDS, CustomResource, custom_resource_definition
from synergy_api.generation.reference import markdown
from synergy_api.generation.schema import Schema, structural_schema
from synergy_api.names import GROUP
from synergy_api.reasons.page import troubleshooting
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec

CHART = Path("helm/kube-synergy")
_POLICY = "schedulingPolicySpec"
_HEADER = "# Generated from the models in api/ by `make crds`; change those, not this file.\n"


class _Dumper(yaml.SafeDumper):
    """Every value in full: no anchors, and list items indented under their key."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def crd_yaml(kind: CustomResource) -> str:
    """The text of one file under `crds/`."""
    document = yaml.dump(custom_resource_definition(kind), Dumper=_Dumper, sort_keys=False, width=120)
    return f"{_HEADER}{document}"


def closed(schema: Schema) -> Schema:
    """A structural schema as plain JSON schema that refuses unknown fields, for what is checked outside a cluster."""
    plain = {key: value for key, value in schema.items() if key != "format" and not key.startswith("x-kubernetes-")}
    if "properties" in plain:
        plain["properties"] = {name: closed(field) for name, field in plain["properties"].items()}
        plain["additionalProperties"] = False
    if "items" in plain:
        plain["items"] = closed(plain["items"])
    if plain.get("exclusiveMinimum") is True:  # so says OpenAPI 3.0; JSON schema names the bound itself
        plain["exclusiveMinimum"] = plain.pop("minimum")
    return plain


def values_schema(text: str) -> str:
    """The schema of the chart's values with the SchedulingPolicy's spec in it brought up to date."""
    document = json.loads(text)
    document["definitions"][_POLICY] = closed(structural_schema(SchedulingPolicySpec))
    return json.dumps(document, indent=2) + "\n"


def generated_files(root: Path) -> dict[Path, str]:
    """Every generated file, by its path under the repository's `root`, with its text."""
    files = {Path("docs/api.md"): markdown(KINDS), Path("docs/troubleshooting.md"): troubleshooting()}
    for kind in KINDS:
        for folder in (Path("crds"), CHART / "crds"):
            files[folder / f"{GROUP}_{kind.plural}.yaml"] = crd_yaml(kind)
    values = CHART / "values.schema.json"
    files[values] = values_schema((root / values).read_text("utf-8"))
    return files


def stale_files(root: Path) -> list[str]:
    """What under `root` is not as the models say: files that differ, are missing, or belong to no kind any more."""
    wanted = generated_files(root)
    found = {path.relative_to(root) for folder in (Path("crds"), CHART / "crds") for path in (root / folder).glob("*")}
    differing = {
        path for path, text in wanted.items() if not (root / path).is_file() or (root / path).read_text("utf-8") != text
    }
    return sorted(str(path) for path in differing | (found - wanted.keys()))


def write(root: Path) -> list[str]:
    """Bring the generated files under `root` up to date; returns the paths that changed."""
    changed = stale_files(root)
    wanted = generated_files(root)
    for name in changed:
        path = root / name
        text = wanted.get(Path(name))
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return changed


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m synergy_api.generation.generate", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the repository's root (default: this folder)")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if something is stale")
    options = parser.parse_args(arguments)
    if not options.check:
        write(options.root)
        return 0
    stale = stale_files(options.root)
    if stale:
        sys.stderr.write(f"stale: {', '.join(stale)}: run make crds\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
