"""What is in the project's images, and under which licences: `python3 -m synergy_devcluster.images.sbom FOLDER`.

Reads the image archives themselves, not what was asked to be installed: Debian's package database, the metadata of
installed Python distributions, and what the Go linker wrote into programs.
"""

import csv
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath
from typing import IO

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from synergy_devcluster.images.licences import debian_licences, go_licence, python_licence
from synergy_devcluster.images.project import GPU_PLUGIN, PROJECT_IMAGES, build_images

_ROOMS = tuple(image.room for image in (*PROJECT_IMAGES, GPU_PLUGIN))
DPKG_STATUS = "var/lib/dpkg/status"
_COPYRIGHT = re.compile(r"usr/share/doc/([^/]+)/copyright")
_DOCUMENTS = re.compile(r"usr/share/doc/[^/]+")
_METADATA = re.compile(r".*\.dist-info/METADATA")
_PROGRAMS = re.compile(r"usr/local/bin/(kube-scheduler)")


@dataclass(frozen=True, order=True)
class Part:
    """One thing in an image. `kind` is a package URL's type: deb, pypi or golang; `licence` is empty if not known."""

    kind: str
    name: str
    version: str
    licence: str

    @property
    def purl(self) -> PackageURL:
        """Its package URL."""
        namespace, _, name = self.name.rpartition("/")
        return PackageURL(self.kind, "debian" if self.kind == "deb" else namespace, name, self.version)


def parts_of(archive: Path) -> list[Part]:
    """All parts of an image archive, sorted by kind and name."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        _unpack(archive, root)
        return sorted({*_debian(root), *_python(root), *_go(root)})


def write(parts: Iterable[Part], image: str, file: Path, at: datetime | None = None) -> None:
    """A CycloneDX document in JSON; with `at` it is of that time, and the same for the same parts."""
    licences, parts = LicenseFactory(), list(parts)
    bom = Bom(
        components=[
            Component(
                name=part.name,
                version=part.version,
                type=ComponentType.LIBRARY,
                purl=part.purl,
                bom_ref=str(part.purl),
                licenses=[licences.make_from_string(part.licence)] if part.licence else [],
            )
            for part in parts
        ]
    )
    if at is not None:
        bom.metadata.timestamp = at
        bom.serial_number = uuid.uuid5(uuid.NAMESPACE_OID, repr((image, parts)))
    whole = Component(name=image, type=ComponentType.CONTAINER, bom_ref=image)
    bom.metadata.component = whole
    bom.register_dependency(whole, bom.components)
    make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_to_file(str(file), allow_overwrite=True, indent=2)


def main(folder: Path) -> int:
    """Write `NAME.cdx.json` for each image and `licences.csv` for all; 1 if a licence is not known."""
    folder.mkdir(parents=True, exist_ok=True)
    unknown = 0
    with (folder / "licences.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["image", "kind", "name", "version", "licence"])
        for tag, archive in build_images(only=_ROOMS, report=print).items():
            name = PurePosixPath(tag).name.partition(":")[0]
            parts = parts_of(archive)
            write(parts, name, folder / f"{name}.cdx.json")
            table.writerows([name, part.kind, part.name, part.version, part.licence] for part in parts)
            without = [part for part in parts if not part.licence]
            unknown += len(without)
            kinds = ", ".join(f"{sum(p.kind == kind for p in parts)} {kind}" for kind in ("deb", "pypi", "golang"))
            print(f"{name}: {kinds}" + "".join(f"\n  no licence known: {part.purl}" for part in without))  # noqa: T201
    return 1 if unknown else 0


def _unpack(archive: Path, root: Path) -> None:
    """Write the files that describe the contents, layer after layer; what a later layer removes is removed."""
    wanted = (re.compile(re.escape(DPKG_STATUS)), _COPYRIGHT, _METADATA, _PROGRAMS)
    with tarfile.open(archive) as image:
        for layer in _layers(image):
            with tarfile.open(fileobj=layer) as content:
                for member in content:
                    path = PurePosixPath(member.name).as_posix().lstrip("./")
                    target = root / path
                    if target.name.startswith(".wh."):
                        target.with_name(target.name.removeprefix(".wh.")).unlink(missing_ok=True)
                    elif member.issym() and _DOCUMENTS.fullmatch(path):  # the documents of another package
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.symlink_to(PurePosixPath(member.linkname).name)
                    elif any(pattern.fullmatch(path) for pattern in wanted) and (data := _content(content, member)):
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(data)


def _layers(image: tarfile.TarFile) -> Iterator[IO[bytes]]:
    manifest = image.extractfile("manifest.json")
    assert manifest is not None
    for name in json.load(manifest)[0]["Layers"]:
        layer = image.extractfile(name)
        assert layer is not None
        yield layer


def _content(content: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    try:
        file = content.extractfile(member)
    except KeyError:  # a link to what another layer has: it was read there
        return b""
    return file.read() if file else b""


def _debian(root: Path) -> Iterator[Part]:
    status = root / DPKG_STATUS
    if not status.exists():
        return
    for paragraph in status.read_text(encoding="utf-8").strip().split("\n\n"):
        fields = HeaderParser().parsestr(paragraph)
        name = fields["Package"]
        copyright_file = root / "usr/share/doc" / name / "copyright"
        text = copyright_file.read_text(encoding="utf-8", errors="replace") if copyright_file.exists() else ""
        yield Part("deb", name, fields["Version"], debian_licences(text))


def _python(root: Path) -> Iterator[Part]:
    for metadata in root.rglob("*.dist-info/METADATA"):
        fields = HeaderParser().parsestr(metadata.read_text(encoding="utf-8", errors="replace"))
        yield Part("pypi", fields["Name"], fields["Version"], python_licence(fields))


def _go(root: Path) -> Iterator[Part]:
    for program in (path for path in root.rglob("*") if _PROGRAMS.fullmatch(path.relative_to(root).as_posix())):
        told = subprocess.run(["go", "version", "-m", str(program)], capture_output=True, text=True, check=True)
        yield from go_parts(told.stdout)


def go_parts(told: str) -> list[Part]:
    """The standard library and the modules that `go version -m` lists for a program."""
    first, *rest = (line.split() for line in told.splitlines() if line.strip())
    modules: list[list[str]] = []
    for line in rest:
        if line[0] == "=>":  # in place of the one above
            modules.pop()
        if line[0] in ("dep", "=>"):
            modules.append(line[1:3])
    return [Part("golang", "stdlib", first[-1].removeprefix("go"), "BSD-3-Clause")] + [
        Part("golang", module, version, go_licence(module, version)) for module, version in modules
    ]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 -m synergy_devcluster.images.sbom FOLDER")
    sys.exit(main(Path(sys.argv[1])))
