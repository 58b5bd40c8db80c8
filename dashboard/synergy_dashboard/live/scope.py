"""Which namespaces a user may see."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from synergy_dashboard.facts import RunFact
from synergy_view.top import JobRow, NodeRow


@dataclass(frozen=True, slots=True)
class Scope:
    """`namespaces` is None where the user may see all of them."""

    namespaces: frozenset[str] | None = None

    @property
    def everything(self) -> bool:
        """True if no namespace is hidden."""
        return self.namespaces is None

    def sees(self, namespace: str) -> bool:
        """True if the user may see the jobs of a namespace."""
        return self.namespaces is None or namespace in self.namespaces

    def names(self, job: str) -> bool:
        """True if the user may see the name of this job (NAMESPACE/NAME)."""
        return self.sees(namespace_of(job))

    def of_history(self) -> Collection[str] | None:
        """The namespaces as `History` takes them."""
        return self.namespaces

    def named(self, jobs: Iterable[str]) -> tuple[str, ...]:
        """The jobs whose names the user may see."""
        return tuple(job for job in jobs if self.names(job))

    def job(self, row: JobRow) -> JobRow:
        """A row of a visible job, without hidden partners."""
        return row if self.everything or not row.partners else replace(row, partners=self.named(row.partners))

    def run(self, run: RunFact) -> RunFact:
        """A run of a visible job, without hidden partners."""
        return run if self.everything or not run.partners else replace(run, partners=self.named(run.partners))

    def node(self, row: NodeRow) -> NodeRow:
        """A node, without the names of hidden jobs."""
        return row if self.everything else replace(row, jobs=self.named(row.jobs))


EVERYTHING: Final = Scope()


def namespace_of(job: str) -> str:
    """The namespace of NAMESPACE/NAME."""
    return job.partition("/")[0]
