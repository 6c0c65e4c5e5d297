"""URL query of the home page: tab, filter, order, columns and page, and the URLs of the other states."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import QueryParams

from ziggurat.entities import JOB_STATES, JobFilter
from ziggurat.errors import UsageError
from ziggurat.workspace.job_query import JobQuery, parse_conditions

__all__ = ["NO_PROJECT", "PAGE_SIZES", "TABS", "HomeQuery", "query_of", "query_of_text"]

PAGE_SIZES: Final = (25, 50, 100, 200)
"""How many jobs a page may show; usually the first: more than a screen holds are only waited for."""

NO_PROJECT: Final = "-"
"""What stands in the address for jobs without a project."""

TABS: Final = {
    "train": ("Models", ("train",)),
    "dataset": ("Datasets", ("dataset",)),
    "test": ("Tests", ("evaluate", "infer")),
    "all": ("Everything", ()),
}
"""Name in the address → title, and the kinds of job that the table has; none for all."""

_GROUPS: Final = ("project", "group")
_ORDER: Final = "-created"
_MOST_COLUMNS: Final = 20
_LONGEST: Final = 200
_WAITING_SHOWN: Final = 5
_WAITING_MOST: Final = 500


@dataclass(frozen=True, kw_only=True)
class HomeQuery:
    """What the first page shows.

    Args:
        kind: a name in ``TABS``.
        states: of the jobs; none for all.
        project: of the jobs; ``NO_PROJECT`` for those without one, empty for all.
        text: that must be in name, id, notes, network or tags.
        tag: that they must have.
        group: sweep that they must be of.
        owner: whose they must be.
        where: conditions, as they were typed.
        sort: name of what they are sorted by; with ``-``, large values first.
        by: ``project`` or ``group``: what stands together; empty for nothing.
        columns: names of spec fields and curves that are shown besides the usual ones.
        limit: how many jobs a page shows, one of ``PAGE_SIZES``.
        offset: jobs that are on the pages before.
        rename: id of the job whose name is being changed.
        waiting: ``all`` to show the whole queue.
    """

    kind: str = "train"
    states: tuple[str, ...] = ()
    project: str = ""
    text: str = ""
    tag: str = ""
    group: str = ""
    owner: str = ""
    where: str = ""
    sort: str = _ORDER
    by: str = ""
    columns: tuple[str, ...] = ()
    limit: int = PAGE_SIZES[0]
    offset: int = 0
    rename: str = ""
    waiting: str = ""

    @property
    def is_filtered(self) -> bool:
        """Whether it leaves out jobs of its tab."""
        return bool(self.states or self.project or self.text or self.tag or self.group or self.owner or self.where)

    @property
    def waiting_limit(self) -> int:
        """How many jobs of the queue are shown."""
        return _WAITING_MOST if self.waiting else _WAITING_SHOWN

    @property
    def sort_name(self) -> str:
        """The name of what is sorted by."""
        return self.sort.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        """Whether large values come first."""
        return self.sort.startswith("-")

    def chosen(self) -> JobFilter:
        """Return the filter.

        Raises:
            UsageError: where a condition is none.
        """
        names = ("text", "tag", "group", "owner", "sort", "offset", "limit")
        query = JobQuery.model_validate(
            {
                **{name: getattr(self, name) for name in names},
                "kind": TABS[self.kind][1],
                "state": self.states,
                "project": {"": None, NO_PROJECT: ""}.get(self.project, self.project),
                "where": [self.where],
            }
        )
        return query.chosen(group_by=self.by)

    def where_problem(self) -> str:
        """Return what is wrong with the conditions; empty for nothing."""
        try:
            parse_conditions(self.where)
        except UsageError as error:
            shape = error.as_dict()
            return " ".join(filter(None, (shape["rule"], f"Received: {shape['received']}.", shape["advice"])))
        return ""

    def values(self, **changes: Any) -> dict[str, Any]:
        """Return the values of an address with some of them changed; usual ones are left out."""
        changed = dataclasses.replace(self, **{"rename": "", "offset": 0, **changes})
        usual = HomeQuery()
        found = {
            _NAMES.get(each.name, each.name): value
            for each in dataclasses.fields(self)
            if (value := getattr(changed, each.name)) != getattr(usual, each.name)
        }
        # The tab stands in every address: without it, what there is decides.
        return {"kind": changed.kind, **{name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}}

    @property
    def text_form(self) -> str:
        """The query of its address, for a field by which a form sends it back."""
        return urlencode(self.values(offset=self.offset), doseq=True)

    def pairs(self, *without: str) -> list[tuple[str, str]]:
        """Return names and values for the hidden fields of a form, all but those of its own fields."""
        found: list[tuple[str, str]] = []
        for name, value in self.values().items():
            if name not in without:
                found += [(name, str(each)) for each in (value if isinstance(value, list) else [value])]
        return found


_NAMES: Final = {"states": "state", "columns": "column"}


def query_of(params: QueryParams, counts: Mapping[str, int] | None = None) -> HomeQuery:
    """Return what an address asks for; what it cannot mean is left out.

    Args:
        params: of the address.
        counts: kind → jobs, to choose a tab where the address names none.
    """
    given = {name: params.get(name, "").strip()[:_LONGEST] for name in _TEXTS}
    kind = params.get("kind", "")
    by, sort, offset = params.get("by", ""), given.pop("sort"), params.get("offset", "")
    limit = next((size for size in PAGE_SIZES if str(size) == params.get("limit")), PAGE_SIZES[0])
    columns = dict.fromkeys(name.strip()[:_LONGEST] for name in params.getlist("column") if name.strip())
    return HomeQuery(
        kind=kind if kind in TABS else _usual_kind(counts or {}),
        states=tuple(state for state in JOB_STATES if state in params.getlist("state")),
        by=by if by in _GROUPS else "",
        sort=sort if sort.removeprefix("-") else _ORDER,
        columns=tuple(columns)[:_MOST_COLUMNS],
        limit=limit,
        offset=min(int(offset), 10**9) // limit * limit if offset.isdecimal() and len(offset) < 12 else 0,
        waiting="all" if params.get("waiting") == "all" else "",
        **given,
    )


def query_of_text(text: str) -> HomeQuery:
    """Return what the query of an address asks for, as a form sends it back."""
    return query_of(QueryParams(parse_qsl(text, keep_blank_values=True)))


_TEXTS: Final = ("project", "text", "tag", "group", "owner", "where", "sort", "rename")


def _usual_kind(counts: Mapping[str, int]) -> str:
    return "dataset" if counts.get("dataset") and not counts.get("train") else "train"
