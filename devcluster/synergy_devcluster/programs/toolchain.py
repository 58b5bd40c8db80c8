"""Find the cluster's programs, or build them once from the locked Go modules in gomodules/."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs.changed_sources import KWOK_CHANGES, SourceChange, changed_module_file
from synergy_devcluster.programs.versions import find_version, pinned
from synergy_devcluster.steps import Report, silent

GO_MODULES = Path(__file__).parent / "gomodules"


@dataclass(frozen=True)
class Program:
    """One executable: its name, the Go package it is built from, and how it prints its version."""

    name: str
    package: str
    version: str | None
    version_args: tuple[str, ...] = ("--version",)


@dataclass(frozen=True)
class Module:
    """Programs that are built together from one Go module, whose dependencies agree."""

    folder: str
    version: str
    programs: tuple[Program, ...]
    link_variables: tuple[tuple[str, str], ...] = ()
    changes: tuple[SourceChange, ...] = ()

    def changed(self, program: Program) -> bool:
        """Say whether the program is built from a changed source, so that its version alone does not tell it apart."""
        return any(f"{program.package}/".startswith(f"{change.module}/") for change in self.changes)

    def fingerprint(self) -> str:
        """Return a short hash of everything that decides what comes out of the build."""
        digest = hashlib.sha256(repr(self).encode())
        for path in sorted((GO_MODULES / self.folder).rglob("*")):
            if path.is_file():
                digest.update(str(path.relative_to(GO_MODULES)).encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()[:12]


def modules() -> tuple[Module, ...]:
    """Return every module with its programs, the slowest build last."""
    versions = pinned()
    kubernetes_names = (
        "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet",
    )  # fmt: skip
    return (
        Module("pause", "1", (Program("pause", ".", None),)),
        Module("etcd", versions.etcd, (Program("etcd", "go.etcd.io/etcd/server/v3", versions.etcd),)),
        Module(
            "clients",
            f"kwok{versions.kwok}-helm{versions.helm}-coredns{versions.coredns}",
            (
                Program("coredns", "./coredns", versions.coredns, ("-version",)),
                Program("helm", "helm.sh/helm/v3/cmd/helm", versions.helm, ("version", "--short")),
                Program("kwok", "sigs.k8s.io/kwok/cmd/kwok", versions.kwok),
            ),
            (
                ("helm.sh/helm/v3/internal/version.version", f"v{versions.helm}"),
                ("sigs.k8s.io/kwok/pkg/consts.Version", f"v{versions.kwok}"),
            ),
            KWOK_CHANGES,
        ),
        Module(
            "kubernetes",
            versions.kubernetes,
            (
                *(Program(name, f"k8s.io/kubernetes/cmd/{name}", versions.kubernetes) for name in kubernetes_names),
                Program("kubectl", "k8s.io/kubernetes/cmd/kubectl", versions.kubernetes, ("version", "--client")),
            ),
            _kubernetes_stamps(),
        ),
    )


def _kubernetes_stamps() -> tuple[tuple[str, str], ...]:
    version = pinned().kubernetes
    major, minor, _ = version.split(".")
    return tuple(
        (f"{package}.{name}", value)
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for name, value in (("gitVersion", f"v{version}"), ("gitMajor", major), ("gitMinor", minor))
    )


def kind_module() -> Module:
    """Return the module of kind itself, which no devcluster runs."""
    version = pinned().kind
    return Module("kind", version, (Program("kind", "sigs.k8s.io/kind", version, ("version",)),))


def kind_node_module() -> Module:
    """Return the module of what only a node of kind needs: kubeadm, and what connects pods and makes volumes."""
    version = pinned().kubernetes
    programs = (
        Program("kind-node-agent", "./kind-node-agent", None),
        Program("kubeadm", "k8s.io/kubernetes/cmd/kubeadm", version, ("version", "-o", "short")),
    )
    return Module("kind-node", version, programs, _kubernetes_stamps())


def kubeconform_module() -> Module:
    """Return the module of kubeconform, with which what the chart renders is checked."""
    version = pinned().kubeconform
    program = Program("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform", version, ("-v",))
    return Module("kubeconform", version, (program,), (("main.version", f"v{version}"),))


def vale_module() -> Module:
    """Return the module of Vale, with which the documentation's prose is checked."""
    version = pinned().vale
    program = Program("vale", "github.com/errata-ai/vale/v2/cmd/vale", version)
    return Module("vale", version, (program,), (("main.version", f"v{version}"),))


def program_version(executable: Path, program: Program) -> str | None:
    """Run an executable's version command; return the version without ``v``, or None if it prints none."""
    try:
        result = subprocess.run(
            [executable, *program.version_args], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return find_version(result.stdout + result.stderr) if result.returncode == 0 else None


def locate(
    paths: Paths, report: Report = silent, bin_dir: Path | None = None, wanted: tuple[Module, ...] | None = None
) -> dict[str, Path]:
    """Return the path of every program, or of those of the ``wanted`` modules, building what is found nowhere.

    Looked for in this order: ``bin_dir``, the cache, PATH, then a build into the cache. A program in
    ``bin_dir`` of another version is refused. On PATH, one of another version is passed over, and one that is
    built from a changed source here.

    Raises:
        BadInputError: a program in ``bin_dir`` is of another version.
        DevclusterError: a build failed.
    """
    found: dict[str, Path] = {}
    for module in modules() if wanted is None else wanted:
        here = _find(paths, module, bin_dir)
        if len(here) < len(module.programs):
            _build(module, _cache_folder(paths, module), report)
            here = _find(paths, module, bin_dir)
        found.update(here)
    return found


def must_build(paths: Paths, bin_dir: Path | None = None) -> bool:
    """Say whether :func:`locate` would have to build, which needs Go."""
    return any(len(_find(paths, module, bin_dir)) < len(module.programs) for module in modules())


def _find(paths: Paths, module: Module, bin_dir: Path | None) -> dict[str, Path]:
    cache = _cache_folder(paths, module)
    found = {
        program.name: _given(bin_dir, program)
        or _cached(cache, program)
        or (None if module.changed(program) else _on_path(program))
        for program in module.programs
    }
    return {name: path for name, path in found.items() if path}


def _cache_folder(paths: Paths, module: Module) -> Path:
    return paths.binaries / f"{module.folder}-{module.version}-{module.fingerprint()}"


def _given(bin_dir: Path | None, program: Program) -> Path | None:
    if bin_dir is None or not (bin_dir / program.name).exists():
        return None
    path = (bin_dir / program.name).resolve()
    version = program_version(path, program) if program.version else None
    if version != program.version:
        raise BadInputError(
            f"--bin-dir: {path} is {version or 'of no known version'}, but {program.version} is needed: "
            "replace it, or take it out of the folder to have it built"
        )
    return path


def _cached(folder: Path, program: Program) -> Path | None:
    path = folder / program.name
    return path if path.is_file() else None


def _on_path(program: Program) -> Path | None:
    found = shutil.which(program.name)
    if found is None or program.version is None:
        return None
    return Path(found) if program_version(Path(found), program) == program.version else None


def _build(module: Module, target: Path, report: Report) -> None:
    with _only_builder(target):
        if all((target / program.name).is_file() for program in module.programs):
            return
        names = ", ".join(program.name for program in module.programs)
        report(f"building {names} (once; cached in {target})")
        scratch = target.with_name(target.name + ".partial")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        _go_build(module, scratch)
        for program in module.programs:
            _check_built(scratch / program.name, program)
        shutil.rmtree(target, ignore_errors=True)
        scratch.rename(target)


def _go_build(module: Module, target: Path) -> None:
    link = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in module.link_variables)])
    packages = [program.package for program in module.programs]
    env = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    command = ["nice", "-n", "5", "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly"]
    # a folder as output keeps the package's last path element as name; a single package may have another
    output = str(target / module.programs[0].name) if len(packages) == 1 else f"{target}/"
    folder = GO_MODULES / module.folder
    with TemporaryDirectory() as scratch:
        changed = changed_module_file(folder, module.changes, Path(scratch), env)
        result = subprocess.run(
            [*command, *changed, "-ldflags", link, "-o", output, *packages],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.strip()] or ["no output"]
        raise DevclusterError(f"go build of module {module.folder!r} failed: {lines[-1]}")


def _check_built(path: Path, program: Program) -> None:
    if program.version and (version := program_version(path, program)) != program.version:
        raise DevclusterError(f"built {program.name} says version {version}, versions.toml says {program.version}")


@contextmanager
def _only_builder(target: Path) -> Iterator[None]:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(target.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
