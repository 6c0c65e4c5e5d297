"""Addresses of the job lists: what a list shows, the tabs that come with it, and those that a user saved."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import QueryParams

from ziggurat.entities import JOB_STATES, RUN_KINDS, JobFilter, JobTotals, Listing
from ziggurat.workspace.job_query import JobQuery, parse_filter

__all__ = [
    "ENDED_WITHIN",
    "LISTS",
    "NO_PROJECT",
    "PAGE_SIZES",
    "HomeQuery",
    "JobList",
    "Tab",
    "query_of",
    "query_of_text",
    "tabs_of",
]


PAGE_SIZES: Final = (25, 50, 100, 200)
"""How many jobs a page may show; usually the first: more than a screen holds are only waited for."""

NO_PROJECT: Final = "-"
"""What stands in the address for jobs without a project."""


@dataclass(frozen=True, kw_only=True)
class JobList:
    """A list of jobs.

    Args:
        title: of its page.
        path: of its page.
        kinds: of the jobs; none for all.
        states: that it is about; none for all.
    """

    title: str
    path: str
    kinds: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


LISTS: Final = {
    "train": JobList(title="Runs", path="/", kinds=RUN_KINDS),
    "all": JobList(title="Runs", path="/"),
    "dataset": JobList(title="Datasets", path="/datasets", kinds=("dataset",)),
    "model": JobList(title="Models", path="/models", kinds=("train",), states=("done",)),
    "test": JobList(title="Evaluations", path="/evaluations", kinds=("evaluate", "infer")),
}
"""Name → the list."""

ENDED_WITHIN: Final = {"": "any time", "1": "24 hours", "7": "7 days", "30": "30 days"}
"""Days in the address → their words."""

_GROUPS: Final = ("project", "group")
_ORDER: Final = "-created"
_MOST_COLUMNS: Final = 20
_LONGEST: Final = 400
_WAITING_MOST: Final = 500
_WAITING_SHOWN: Final = 1
_PINNED: Final = 5
_DAY_S: Final = 86400.0
_BEST: Final = "best"
_SWEEPS: Final = "sweeps"
_ACTIVE_VIEW: Final = "active"


@dataclass(frozen=True, kw_only=True)
class HomeQuery:
    """What a list shows.

    Args:
        kind: a name in ``LISTS``.
        view: the tab by which one came; empty for the first.
        states: of the jobs; none for all.
        project: of the jobs; ``NO_PROJECT`` for those without one, empty for all.
        q: what stands in the filter box: words, conditions, or both.
        tag: that they must have.
        group: sweep that they must be of.
        owner: whose they must be.
        days: within how many days they must have ended; empty for any time.
        sort: name of what they are sorted by; with ``-``, large values first.
        by: ``project`` or ``group``: what stands together; empty for nothing.
        columns: names of spec fields and curves that are shown besides the usual ones.
        limit: how many jobs a page shows, one of ``PAGE_SIZES``.
        offset: jobs that are on the pages before.
        rename: id of the job whose name is being changed.
        waiting: ``all`` to show the whole queue.
        open: id of the sweep whose jobs are shown below it.
        shape: ``table`` where datasets are no cards.
    """

    kind: str = "train"
    view: str = ""
    states: tuple[str, ...] = ()
    project: str = ""
    q: str = ""
    tag: str = ""
    group: str = ""
    owner: str = ""
    days: str = ""
    sort: str = _ORDER
    by: str = ""
    columns: tuple[str, ...] = ()
    limit: int = PAGE_SIZES[0]
    offset: int = 0
    rename: str = ""
    waiting: str = ""
    open: str = ""
    shape: str = ""

    @property
    def page(self) -> JobList:
        """The list that it shows."""
        return LISTS[self.kind]

    @property
    def is_filtered(self) -> bool:
        """Whether it leaves out jobs of its list."""
        given = (self.states, self.project, self.q, self.tag, self.group, self.owner, self.days)
        return any(given) or self.view in (_BEST, _SWEEPS)

    @property
    def hidden_filters(self) -> int:
        """How many filters are set that stand behind "+ Filter"."""
        return sum(map(bool, (self.tag, self.owner, self.days, self.group, self.kind == "all")))

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

    @property
    def shows_sweeps(self) -> bool:
        """Whether a sweep is one row: not where its jobs are asked for, or some of them."""
        chosen = (self.states, self.q, self.tag, self.group, self.days, self.by)
        return self.kind == "train" and self.view != _BEST and self.sort == _ORDER and not any(chosen)

    def chosen(self, now: float = 0.0) -> JobFilter:
        """Return the filter.

        Args:
            now: seconds since 1970, for what ended lately.

        Raises:
            UsageError: where a condition is none.
        """
        names = ("tag", "group", "owner", "sort", "offset", "limit")
        query = JobQuery.model_validate(
            {
                **{name: getattr(self, name) for name in names},
                "kind": self.page.kinds,
                "state": self.states or self.page.states,
                "project": {"": None, NO_PROJECT: ""}.get(self.project, self.project),
            }
        )
        typed = parse_filter(self.q)
        # Full minutes: equal filters within one have an answer that is kept.
        recent = (("ended", ">", now // 60 * 60 - _DAY_S * int(self.days)),) if self.days else ()
        listing = Listing(
            pinned=self._pinned(),
            one_per_sweep=self.shows_sweeps,
            sweeps_only=self.view == _SWEEPS,
            best_per_dataset=self.view == _BEST,
        )
        found = query.chosen(group_by=self.by)
        conditions = (*typed.conditions, *recent)
        return dataclasses.replace(found, words=typed.words, conditions=conditions, listing=listing)

    def _pinned(self) -> int:
        if self.sort != _ORDER or self.by or self.view == _BEST or self.kind not in ("train", "all"):
            return 0
        return _WAITING_MOST if self.view == _ACTIVE_VIEW else _PINNED

    def values(self, **changes: Any) -> dict[str, Any]:
        """Return the values of an address with some of them changed; usual ones are left out."""
        changed = dataclasses.replace(self, **{"rename": "", "offset": 0, **changes})
        usual = HomeQuery()
        found = {
            _NAMES.get(each.name, each.name): value
            for each in dataclasses.fields(self)
            if (value := getattr(changed, each.name)) != getattr(usual, each.name)
        }
        if changed.kind != "all":
            found.pop("kind", None)  # the path says it
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    @property
    def text_form(self) -> str:
        """The query of its address with the list, for a field by which a form sends it back."""
        return urlencode({"kind": self.kind, **self.values(offset=self.offset)}, doseq=True)

    def pairs(self, *without: str) -> list[tuple[str, str]]:
        """Return names and values for the hidden fields of a form, all but those of its own fields."""
        found: list[tuple[str, str]] = []
        for name, value in self.values().items():
            if name not in without:
                found += [(name, str(each)) for each in (value if isinstance(value, list) else [value])]
        return found


_NAMES: Final = {"states": "state", "columns": "column"}


def query_of(params: QueryParams, kind: str = "train") -> HomeQuery:
    """Return what an address asks for; what it cannot mean is left out.

    Args:
        params: of the address.
        kind: the list that its path says.
    """
    given = {name: params.get(name, "").strip()[:_LONGEST] for name in _TEXTS}
    # Addresses of 0.1 have the words and the conditions apart.
    older = [params.get(name, "").strip() for name in ("where", "text")]
    by, sort, offset = params.get("by", ""), given.pop("sort"), params.get("offset", "")
    limit = next((size for size in PAGE_SIZES if str(size) == params.get("limit")), PAGE_SIZES[0])
    columns = dict.fromkeys(name.strip()[:_LONGEST] for name in params.getlist("column") if name.strip())
    asked = params.get("kind", "")
    states = ",".join(params.getlist("state")).split(",")  # the form has one field for several states
    return HomeQuery(
        kind=asked if asked in LISTS else kind,
        q=given.pop("q") or " and ".join(filter(None, older))[:_LONGEST],
        states=tuple(state for state in JOB_STATES if state in states),
        days=days if (days := params.get("days", "")) in ENDED_WITHIN else "",
        by=by if by in _GROUPS else "",
        sort=sort if sort.removeprefix("-") else _ORDER,
        columns=tuple(columns)[:_MOST_COLUMNS],
        limit=limit,
        offset=min(int(offset), 10**9) // limit * limit if offset.isdecimal() and len(offset) < 12 else 0,
        waiting="all" if params.get("waiting") == "all" else "",
        shape="table" if params.get("shape") == "table" else "",
        **given,
    )


def query_of_text(text: str, kind: str = "train") -> HomeQuery:
    """Return what the query of an address asks for, as a form sends it back."""
    return query_of(QueryParams(parse_qsl(text, keep_blank_values=True)), kind)


_TEXTS: Final = ("project", "q", "tag", "group", "owner", "sort", "rename", "view", "open")


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab.

    Args:
        id: of its element.
        title: that stands on it.
        query: what it shows.
        count: of jobs; None where it is not counted.
        is_current: whether it is the one that is shown.
        saved: name of the saved view; empty for one that comes with the page.
    """

    id: str
    title: str
    query: HomeQuery
    count: int | None = None
    is_current: bool = False
    saved: str = ""


_ACTIVE: Final = ("queued", "running", "stopping")


def tabs_of(query: HomeQuery, totals: JobTotals, saved: Mapping[str, str]) -> list[Tab]:
    """Return the tabs of the runs page.

    Args:
        query: what is shown.
        totals: how many jobs there are.
        saved: name → query of the views that the user saved.
    """
    active = HomeQuery(kind="all", view=_ACTIVE_VIEW, states=_ACTIVE)
    unfinished = sum(totals.states[each] for each in _ACTIVE)
    made = [
        Tab(id="tab-all", title="All", query=HomeQuery()),
        Tab(
            id="tab-active",
            title="Running and queued",
            query=active,
            count=unfinished,
        ),
        Tab(id="tab-best", title="Best per dataset", query=HomeQuery(view=_BEST)),
        Tab(id="tab-sweeps", title="Sweeps", query=HomeQuery(view=_SWEEPS), count=totals.sweeps),
        Tab(
            id="tab-failed",
            title="Failed this week",
            query=HomeQuery(view="failed", states=("failed",), days="7"),
            count=totals.failed,
        ),
    ]
    for number, (name, text) in enumerate(saved.items()):
        own = dataclasses.replace(query_of_text(text), view=f"my:{name}", offset=0, rename="", waiting="", open="")
        made.append(Tab(id=f"tab-saved-{number}", title=name, query=own, saved=name))
    shown = query.view if query.view in {each.query.view for each in made} else ""
    return [dataclasses.replace(each, is_current=each.query.view == shown) for each in made]
