"""What MkDocs adds: files from outside docs/, the list of decisions, the help of commands, tables of metrics."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from prometheus_client import CollectorRegistry

from synergy_cli.main import main
from synergy_dashboard.metrics import Metrics as DashboardMetrics
from synergy_extender.metrics import Metrics as ExtenderMetrics
from synergy_operator.edge.metrics import Metrics as OperatorMetrics

ROOT = Path(__file__).parents[2]
ADDED = {
    "chart.md": Path("helm/kube-synergy/README.md"),
    "changelog.md": Path("CHANGELOG.md"),
    "contributing.md": Path("CONTRIBUTING.md"),
    "tenants.yaml": Path("examples/tenants.yaml"),
    "tenant-tree.yaml": Path("examples/tenant-tree.yaml"),
}
"""A page of the site, and the file that it shows."""
_WIDTH = 100
_LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
_GENERATED = re.compile(r"<!-- generated: ([\w ]+) -->")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of `ADDED`, and the list of decisions."""
    for page, source in ADDED.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    files.append(File.generated(config, "decisions/index.md", content="\n".join(_decisions())))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at the site's own pages, and fill in what is generated."""
    source = ADDED.get(page.file.src_uri, Path("docs") / page.file.src_uri)
    linked = _LINK.sub(lambda match: f"]({_target(match[1], source)}{match[2] or ''})", markdown)
    return _GENERATED.sub(lambda match: "\n".join(_PARTS[match[1]]()), linked)


def _target(link: str, source: Path) -> str:
    """A link in the file `source`, as the site has it."""
    wanted = (ROOT / source).parent.joinpath(link).resolve()
    docs = ROOT / "docs"
    for page, path in ADDED.items():
        if wanted == (ROOT / path).resolve():
            return _up(source) + page
    if source in ADDED.values() and wanted.is_relative_to(docs):
        return str(wanted.relative_to(docs)) if wanted.is_file() else f"{wanted.relative_to(docs)}/index.md"
    return link


def _up(source: Path) -> str:
    """The way from the page of the file `source` to the top of the site."""
    return "" if source in ADDED.values() else "../" * (len(source.parts) - 2)


def _decisions() -> Iterator[str]:
    yield "# Decisions"
    yield ""
    yield "Each record says what was decided, why, and what was measured or tried instead."
    yield ""
    for file in sorted((ROOT / "docs/decisions").glob("[0-9]*.md")):
        title = file.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        yield f"- [{title}]({file.name})"


def _commands() -> Iterator[str]:
    yield from _command(main, click.Context(main, info_name="kube-synergy", max_content_width=_WIDTH), depth=2)


def _command(command: click.Command, context: click.Context, depth: int) -> Iterator[str]:
    """The help of a command, and of those below it."""
    yield f"{'#' * min(depth, 4)} {context.command_path}\n"
    yield f"```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                inside = click.Context(below, context, info_name=name, max_content_width=_WIDTH)
                yield from _command(below, inside, depth + 1)


def _metrics(registry: CollectorRegistry) -> Iterator[str]:
    yield "| metric | type | labels | meaning |"
    yield "|---|---|---|---|"
    rows = set()
    for collector in registry._collector_to_names:  # the library has no public way to the labels
        labels = ", ".join(f"`{label}`" for label in getattr(collector, "_labelnames", ()))
        for family in collector.describe():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            rows.add(f"| `{name}` | {family.type} | {labels} | {family.documentation} |")
    yield from sorted(rows)


_PARTS = {
    "commands": _commands,
    "extender metrics": lambda: _metrics(ExtenderMetrics().registry),
    "dashboard metrics": lambda: _metrics(DashboardMetrics().registry),
    "operator metrics": lambda: _metrics(OperatorMetrics().registry),
}
