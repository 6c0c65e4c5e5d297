"""Three contract types for import-linter, so that ``.importlinter`` may name packages that do not exist yet."""

from __future__ import annotations

from typing import cast

import grimp
from importlinter import ContractCheck, output
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.protected import ProtectedContract
from importlinter.domain.imports import ModuleExpression

__all__ = ["AcyclicAtRunTime", "ForbiddenWherePresent", "ProtectedWherePresent"]

PACKAGE = "ziggurat"


class ForbiddenWherePresent(ForbiddenContract):
    """``forbidden``, without complaint about own modules that do not exist (yet)."""

    type_name = "forbidden_where_present"

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Check what exists of the sources and of the forbidden modules."""
        self.source_modules = _present(graph, self.source_modules)
        self.forbidden_modules = _present(graph, self.forbidden_modules)
        return super().check(graph, verbose)


class ProtectedWherePresent(ProtectedContract):
    """``protected``, without complaint about own modules that do not exist (yet)."""

    type_name = "protected_where_present"

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Check what exists of the protected modules."""
        self.protected_modules = _present(graph, self.protected_modules)
        return super().check(graph, verbose)


class AcyclicAtRunTime(AcyclicSiblingsContract):
    """``acyclic_siblings`` without the imports for the type checker: a callback may name the trainer's type."""

    type_name = "acyclic_at_run_time"

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Look for cycles in a graph without what stands under ``if TYPE_CHECKING:``."""
        self._graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
        return super().check(self._graph, verbose)

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name, for each cycle, the imports that would have to go."""
        broken: dict[str, set[tuple[str, str]]] = check.metadata["cycle_breakers_by_package"]
        for package, imports in sorted(broken.items()):
            output.print_error(f"The parts of {package} import one another in a circle; these imports close it:")
            output.new_line()
            for importer, imported in sorted(imports):
                details = self._graph.get_import_details(importer=importer, imported=imported)
                lines = ", ".join(f"l.{detail['line_number']}" for detail in details)
                output.print_error(f"-   {importer} -> {imported} ({lines})", bold=False)
            output.new_line()


def _present(graph: grimp.ImportGraph, expressions: object) -> set[ModuleExpression]:
    return {
        expression
        for expression in cast(set[ModuleExpression], expressions)
        if expression.has_wildcard_expression()
        or not expression.expression.startswith(PACKAGE)
        or expression.expression in graph.modules
    }
