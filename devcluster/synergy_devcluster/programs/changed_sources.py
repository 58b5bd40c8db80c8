"""Go modules with a fault that no option avoids are built from a changed copy of their source."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synergy_devcluster.errors import DevclusterError


@dataclass(frozen=True)
class SourceChange:
    """In this file of a Go module, each `before` becomes `after`. `why` is for those who read it."""

    module: str
    file: str
    before: str
    after: str
    why: str


_KWOK = "sigs.k8s.io/kwok"
KWOK_CHANGES = (
    SourceChange(
        _KWOK,
        "pkg/utils/informer/informer.go",
        """\
			opt.setup(&opts)
			return listWatch.WatchWithContext(ctx, opts)
""",
        """\
			version := opts.ResourceVersion
			opt.setup(&opts)
			opts.ResourceVersion = version
			return listWatch.WatchWithContext(ctx, opts)
""",
        "kwok 0.8.0 begins each watch at version 0, so the API server sends all pods again whenever a watch ends, "
        "every 5 to 10 minutes. With thousands of pods kwok takes them too slowly, so the API server closes the "
        "watch, and all begins anew: for minutes all is slow. With the change a watch goes on where the one before "
        "ended.",
    ),
    SourceChange(
        _KWOK,
        "pkg/kwok/controllers/utils.go",
        """\
	// ignore all other cases
	return false
""",
        """\
	reason := apierrors.ReasonForError(err)
	return reason == "" || reason == "InternalError"
""",
        "kwok 0.8.0 gives a write up when its connection breaks or etcd fails meanwhile, and makes it again only "
        "because each new watch brings the pod again. A kubelet tries until it gets through. With the change kwok does "
        "so too, unless the API server says what is wrong with the write itself.",
    ),
    SourceChange(
        _KWOK,
        "pkg/kwok/controllers/utils.go",
        "Cap: 32 * time.Minute",
        "Cap: 8 * time.Second",
        "A kubelet tries again within seconds, however often it has failed.",
    ),
)


def changed_module_file(
    folder: Path, changes: Sequence[SourceChange], scratch: Path, env: Mapping[str, str]
) -> list[str]:
    """The arguments with which Go builds the module in `folder` from changed copies, which are made in `scratch`: none
    without changes.

    Raises DevclusterError if a source is not as a change expects it.
    """
    if not changes:
        return []
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(folder / name, scratch / name)
    for module in dict.fromkeys(change.module for change in changes):
        told = json.loads(_go(["mod", "download", "-json", module], folder, env))
        copy = scratch / module
        shutil.copytree(told["Dir"], copy, copy_function=shutil.copyfile)
        for change in changes:
            if change.module == module:
                change_file(copy / change.file, change)
        _go(["mod", "edit", f"-replace={module}={copy}", str(scratch / "go.mod")], folder, env)
    return [f"-modfile={scratch / 'go.mod'}"]


def change_file(file: Path, change: SourceChange) -> None:
    """Make the change in this copy of the file. Raises DevclusterError if the file does not have its `before`."""
    source = file.read_text(encoding="utf-8")
    if change.before not in source:
        raise DevclusterError(
            f"{change.file} of {change.module} no longer has the lines that changed_sources.py replaces: read the new "
            "file, and correct or remove the entry"
        )
    file.write_text(source.replace(change.before, change.after), encoding="utf-8")


def _go(arguments: Sequence[str], folder: Path, env: Mapping[str, str]) -> str:
    result = subprocess.run(["go", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        lines = (result.stderr or result.stdout).strip().splitlines() or ["no output"]
        raise DevclusterError(f"go {' '.join(arguments)} failed: {lines[-1]}")
    return result.stdout
