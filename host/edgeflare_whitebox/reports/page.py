"""The page's sections on what was inspected: entry points of ``edgeflare.analyses``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from edgeflare.analysis import PagePart
from edgeflare.document import Name
from edgeflare.reports.document import to_html
from edgeflare.store import Store
from edgeflare_whitebox import stored_classes, stored_coverage, stored_importance, stored_units
from edgeflare_whitebox.reports.classes_page import classes_html
from edgeflare_whitebox.reports.coverage import coverage_document
from edgeflare_whitebox.reports.importance_page import importance_html
from edgeflare_whitebox.reports.units import units_document


@dataclass(frozen=True)
class Inspected:
    """A stored result of ``inspect``; `html` makes its section's content."""

    name: str
    order: int
    title: str
    stored: Callable[[Store], Any]
    html: Callable[[Store, Any, Name], Markup]

    def page(self, store: Store, name: Name) -> PagePart | None:
        """Return the section, None where no result is stored. Raises StoreError."""
        result = self.stored(store)
        if result is None:
            return None
        html = self.html(store, result, name)
        return PagePart(self.name, self.name.capitalize(), self.title, html, self.order)


COVERAGE = Inspected(
    "coverage",
    100,
    "Coverage of the original",
    stored_coverage,
    lambda _, result, __: to_html(coverage_document(result)),
)
IMPORTANCE = Inspected(
    "importance", 110, "What matters in the original", stored_importance, importance_html
)
CLASSES = Inspected("classes", 120, "Classes: confusion and bias", stored_classes, classes_html)
UNITS = Inspected(
    "units",
    130,
    "Units of the original that go with deviation",
    stored_units,
    lambda _, result, __: to_html(units_document(result)),
)
