"""Where the code and the unit tests of a component are, and which part of it a run judges."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Component:
    """A folder of the repository with one Python package, and the unit tests of that package."""

    name: str
    code: Path
    """The package's folder: `extender/synergy_extender`."""
    tests: Path
    """The folder of its unit tests: `tests/unit/extender`."""

    def files(self) -> list[Path]:
        """Its Python files, in a fixed order."""
        return sorted(self.code.rglob("*.py"))


@dataclass(frozen=True, slots=True)
class Package:
    """A folder or file of a component: `decisions` of the extender."""

    component: Component
    below: PurePosixPath
    """Relative to the component's code."""

    @property
    def name(self) -> str:
        """Names it in a file name: `extender-decisions`."""
        return "-".join([self.component.name, *self.below.parts])

    @property
    def own_tests(self) -> Path:
        """The innermost folder of unit tests for all of it."""
        place = self.component.code / self.below
        return own_tests(self.component, place if place.is_file() else place / "__init__.py")

    def files(self) -> list[Path]:
        """Its Python files, in a fixed order.

        Raises:
            SystemExit: there is none.
        """
        place = self.component.code / self.below
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        if not files:
            raise SystemExit(f"PACKAGE: {place.relative_to(ROOT)} has no Python file. {_how_to_name_one()}")
        return files


def package_of(name: str) -> Package:
    """The package that `name` means: `extender/decisions`, its path `extender/synergy_extender/decisions`, or, for the
    core, `policies/rounds`.

    Raises:
        SystemExit: it leads out of its component.
    """
    parts = PurePosixPath(name).parts
    if ".." in parts or PurePosixPath(name).is_absolute():
        raise SystemExit(f"PACKAGE: {name} is not relative to a component. {_how_to_name_one()}")
    components = {component.name: component for component in _components()}
    folders = {component.code.parent.name: component for component in components.values()}
    found = (components | folders).get(parts[0]) if parts else None
    if found is None:
        return Package(components["core"], PurePosixPath(*parts))
    below = parts[2:] if parts[1:2] == (found.code.name,) else parts[1:]
    return Package(found, PurePosixPath(*below))


def own_tests(component: Component, path: Path) -> Path:
    """The innermost folder of unit tests for a file of the component."""
    package = path.relative_to(component.code).parent
    return next(
        component.tests / folder for folder in (package, *package.parents) if (component.tests / folder).is_dir()
    )


def _components() -> Iterator[Component]:
    for code in sorted(ROOT.glob("*/synergy_*/")):
        name = code.name.removeprefix("synergy_")
        yield Component(name, code, ROOT / "tests" / "unit" / name)


def _how_to_name_one() -> str:
    return "Give a folder or file of a component, such as extender/decisions, or of the core, such as policies/rounds"
