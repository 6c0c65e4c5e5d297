"""Importer for tables in CSV, TSV and Parquet files: a sample is a row, and one column is the target."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from ziggurat.datasets.formats.shared.text_encodings import ENCODING_OPTION
from ziggurat.datasets.formats.shared.text_files import encoding_of, encoding_problems, head_lines
from ziggurat.datasets.formats.table.columns import (
    ColumnPlan,
    ColumnProfile,
    Target,
    choose_target,
    class_numbers,
    is_missing,
    plan_column,
    time_of,
    twins,
)
from ziggurat.datasets.formats.table.dialect import Description, guess_dialect
from ziggurat.datasets.formats.table.files import (
    PARQUET_SUFFIXES,
    ParquetTable,
    Row,
    TableFile,
    TableReader,
    TableSigns,
    TextTable,
    is_parquet,
    is_table_file,
    split_of,
    table_files,
    table_signs,
)
from ziggurat.datasets.formats.table.image_tables import image_tables
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import DAY_OPEN, LEAKING, Problem, Sample
from ziggurat.errors import DataError, MissingDependencyError, UnknownNameError
from ziggurat.records.schema import COLUMN_TYPES, Column, Schema

__all__ = ["TableImporter"]

MISSING: Final = ["", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A"]
"""Default texts that mean a missing value."""

TABLE_SUFFIXES: Final = (".csv", ".tsv", ".tab", ".data", *PARQUET_SUFFIXES)
_GUESSED: Final = ("guess", "yes", "no")

_SPLIT_COLUMN: Final = "split"
_ELSEWHERE: Final = "the first file has no such column"


class TableImporter(Importer):
    """Tables in text files and Parquet files."""

    name = "table"
    title = "Table (CSV, TSV, Parquet)"
    kinds = ("table",)
    options: ClassVar[tuple[ImporterOption, ...]] = (
        ImporterOption(name="target", type=str, default="", help="Column to be predicted; `none` for none."),
        ImporterOption(
            name="task",
            type=str,
            default="guess",
            help="Whether the target is a class or a number.",
            choices=("guess", "classes", "number"),
        ),
        ImporterOption(name="exclude", type=list, default=[], help="Columns that are not read."),
        ImporterOption(name="types", type=dict, default={}, help="Name of a column → its type."),
        ImporterOption(
            name="header", type=str, default="guess", help="Whether the first row names the columns.", choices=_GUESSED
        ),
        ImporterOption(name="names", type=list, default=[], help="Names of the columns, in order."),
        ImporterOption(name="delimiter", type=str, default="", help="What stands between cells."),
        ImporterOption(
            name="quotes", type=str, default="guess", help="Whether double quotes enclose cells.", choices=_GUESSED
        ),
        ImporterOption(name="decimal", type=str, default="", help="Sign of decimals.", choices=("", ".", ",")),
        ImporterOption(name="comment", type=str, default="", help="How lines begin that do not count."),
        ImporterOption(name="missing", type=list, default=MISSING, help="Texts that stand for no value."),
        ImporterOption(name="split", type=str, default="", help="Column that says train, val or test."),
        ImporterOption(name="group", type=str, default="", help="Column of what no split tears apart."),
        ImporterOption(
            name="time", type=str, default="", help="Column with the time of a row: dates, times, or numbers."
        ),
        ImporterOption(
            name="dates",
            type=str,
            default="guess",
            help="How dates such as 03/04/2024 are read; by default the other cells tell, else the month is first.",
            choices=("guess", "month first", "day first"),
        ),
        ENCODING_OPTION,
        ImporterOption(name="file", type=str, default="", help="The file, where a folder has several tables."),
    )

    def guess(self, source: Path) -> Guess | None:
        """Say whether a source is a table: by the name of the file and its first lines."""
        if Description.is_in(source, "table"):
            return self._guess(1.0, "a `columns.json` that describes tables")
        try:
            files = table_files(source, TABLE_SUFFIXES)
        except DataError:
            return None
        path = files[0].path
        if not is_parquet(path) and not is_table_file(path, TABLE_SUFFIXES):
            return None
        try:
            signs = table_signs(path)
        except MissingDependencyError:
            return self._guess(0.5, "a Parquet file; reading it needs pyarrow")
        except DataError:
            return None
        return self._judged(source, files, signs)

    def obstacle(self, source: Path) -> str:
        """Say why the file of a table cannot be read."""
        try:
            path = table_files(source, TABLE_SUFFIXES)[0].path
            if path.suffix.lower() in TABLE_SUFFIXES and not is_parquet(path):
                encoding_of(path, asks=False)
                table_signs(path)
        except DataError as error:
            return str(error) if source.is_file() else ""
        return ""

    def scan(self, source: Path, options: Mapping[str, Any]) -> TableScan:
        """Return a walk through the rows."""
        description = Description.load(source, "table") if source.is_dir() else None
        suffixes = TABLE_SUFFIXES if description is None else (description.suffix,)
        files = table_files(source, suffixes, options["file"])
        first = _reader(files[0], options, description)
        alike = {**options, **_written_like(first)}
        others = [(_reader(file, alike, description), file.split) for file in files[1:]]
        return TableScan([(first, files[0].split), *others], options, description)

    def _judged(self, source: Path, files: list[TableFile], signs: TableSigns) -> Guess | None:
        size = f"{len(signs.profiles)} columns, {signs.dialect}"
        if signs.has_images or image_tables(source):
            return self._guess(0.1, f"a table that names images: {size}")
        if signs.is_texts:
            return self._guess(0.4, f"a table of {size}, which looks like labeled texts")
        if len(signs.profiles) < 2:
            return self._guess(0.1, "a table of one column")
        confidence = 0.8 if not source.is_dir() or any(file.split for file in files) else 0.6
        if signs.share_of_good_rows < 0.95:
            confidence -= 0.2
        elif files[0].path.suffix.lower() == ".data":
            confidence -= 0.1
        return self._guess(confidence, f"a table of {size}")

    def _guess(self, confidence: float, reason: str) -> Guess:
        return Guess(format=self.name, confidence=confidence, reason=reason, kind="table")


def _written_like(first: TextTable | ParquetTable) -> dict[str, Any]:
    """Return the options for the files of other splits, whose few rows may say less of themselves."""
    if not isinstance(first, TextTable):
        return {}
    return {"header": "yes"} if first.has_header else {"header": "no", "names": list(first.names)}


def _reader(file: TableFile, options: Mapping[str, Any], description: Description | None) -> TextTable | ParquetTable:
    if is_parquet(file.path):
        return ParquetTable(file.path)
    if description is not None:
        return TextTable(file.path, description.dialect, header="yes", names=description.column_names)
    dialect = guess_dialect(
        head_lines(file.path, options["encoding"]),
        delimiter=options["delimiter"],
        comment=options["comment"],
        quotes=options["quotes"],
    )
    if dialect.is_decimal_open and not options["decimal"]:
        raise DataError(
            f"It is not clear whether 1,234 in `{file.path.name}` is 1.234 or 1234.",
            advice="Set the option `decimal` to , where the comma begins the decimals, or to . where it groups "
            "thousands.",
            details={"field": "options.decimal"},
        )
    dialect = replace(dialect, decimal=options["decimal"] or dialect.decimal)
    expected = {options[role] for role in ("target", "split", "group", "time")} | set(options["types"])
    return TextTable(
        file.path,
        dialect,
        header=options["header"],
        names=options["names"],
        expected=expected - {"", "none"},
        encoding=options["encoding"],
    )


class TableScan(Scan):
    """One walk through a table.

    Args:
        readers: of its files, each with the split that its rows are in; the first one names the columns.
        options: those of ``TableImporter``.
        description: what an export of ours said of it; None for none.
    """

    def __init__(
        self,
        readers: Sequence[tuple[TextTable | ParquetTable, str]],
        options: Mapping[str, Any],
        description: Description | None = None,
    ) -> None:
        self._readers = readers
        self._options = options
        self._description = description
        self._names = readers[0][0].names
        self._missing = frozenset(map(str, options["missing"]))
        self._roles = {role: options[role] for role in ("split", "group", "time")}
        if description is not None:
            self._missing = frozenset([] if description.missing is None else [description.missing])
            details = description.schema.details
            self._roles |= {role: self._roles[role] or details.get(role, "") for role in ("group", "time")}
        columns = () if description is None else description.schema.columns
        self._known_columns = {column.name: column for column in columns}
        self._check_names()
        self._target: Target | None = None
        self._plans: list[tuple[int, ColumnPlan]] = []
        self._times: tuple[int, ColumnPlan] | None = None
        self._key: int | None = None

    def __iter__(self) -> Iterator[Sample | Problem]:
        """Yield the problems of the table as a whole, its rows in their order, and what was wrong with their cells."""
        yield from self._problems_of_files()
        profiles = self._profiles()
        if not profiles[0].rows:
            raise DataError("A table has rows below its header.", received=f"`{self._readers[0][0].path}` with none")
        self._plan(profiles)
        yield from self._problems_of_columns(profiles)
        for reader, split in self._readers:
            yield from self._samples(reader, split)
        yield from self._problems_of_cells()

    @property
    def schema(self) -> Schema:
        """What the rows mean."""
        columns = [_with_missing(plan) for _, plan in self._plans]
        details: dict[str, Any] = {role: name for role, name in self._roles.items() if name}
        if self._target is not None:
            details["target_reason"] = self._target.reason
        if self._description is not None:
            details = dict(self._description.schema.details)
        return Schema(
            kind="table",
            class_names=self._target.class_names if self._target else (),
            columns=tuple(columns),
            target=self._target.name if self._target else "",
            details=details,
        )

    # ---- the first walk

    def _profiles(self) -> list[ColumnProfile]:
        first = self._readers[0][0]
        dates = self._options["dates"] if self._options["dates"] != "guess" else ""
        profiles = [
            ColumnProfile(name, self._missing, decimal=first.decimal, typed=first.typed, dates=dates)
            for name in self._names
        ]
        for reader, _ in self._readers:
            for row in self._rows(reader):
                if not row.reason:
                    for profile, cell in zip(profiles, row.cells, strict=True):
                        profile.add(cell, row.place)
        return profiles

    def _rows(self, reader: TableReader) -> Iterator[Row]:
        """Yield rows with the columns of the first file, whatever the order in this one."""
        if reader.names == self._names:
            yield from reader.rows()
            return
        places = {name: place for place, name in enumerate(reader.names)}
        where = [places.get(name) for name in self._names]
        for row in reader.rows():
            yield row if row.reason else row._replace(cells=[None if at is None else row.cells[at] for at in where])

    def _plan(self, profiles: Sequence[ColumnProfile]) -> None:
        if not self._roles["split"] and self._description is None:
            self._roles["split"] = _split_column(profiles)
        self._key = self._key_column(profiles)
        used = {self._roles["split"], *map(str, self._options["exclude"])}
        if self._description is not None:
            used.add(self._description.key)
        kept = [(index, profile) for index, profile in enumerate(profiles) if profile.name not in used]
        self._check_types([profile for _, profile in kept])
        self._target = self._choose_target([profile for _, profile in kept])
        self._plans = [(index, self._plan_of(profile)) for index, profile in kept]
        # A column that is excluded is no input of a network, and may say the time all the same.
        self._times = next(
            ((index, self._plan_of(each)) for index, each in enumerate(profiles) if each.name == self._roles["time"]),
            None,
        )

    def _check_types(self, profiles: Sequence[ColumnProfile]) -> None:
        """Refuse columns of which it is not clear whether they are numbers or times.

        Raises:
            DataError: where there are some; ``details["field"]`` names the option.
        """
        said = self._options["types"]
        if self._description is not None:
            return
        found = [profile.doubt() for profile in profiles if profile.name not in said]
        doubts = [doubt for doubt in found if doubt is not None]
        if doubts:
            types = json.dumps({doubt.name: doubt.type for doubt in doubts}, ensure_ascii=False)
            raise DataError(
                "Most cells of a column are numbers or times, and more than 1 % are none.",
                received="; ".join(map(str, doubts)),
                advice=f"Set the option `types` to {types}, which takes these cells for missing, or to another type, "
                "such as category or text; or give the option `missing` all texts that stand for no value.",
                details={"field": "options.types"},
            )
        times = next((each for each in profiles if each.name == self._roles["time"] and each.is_day_open), None)
        if times is not None:
            raise DataError(
                "The order of the rows in time is not clear.",
                received=f"`{times.name}` with dates that can have the month or the day first",
                advice="Set the option `dates` to `month first` or `day first`.",
                details={"field": "options.dates"},
            )

    def _plan_of(self, profile: ColumnProfile) -> ColumnPlan:
        known = self._known_columns.get(profile.name)
        is_class = self._target is not None and self._target.is_class and self._target.name == profile.name
        return plan_column(
            profile,
            known.type if known else self._options["types"].get(profile.name) or self._type(profile),
            categories=known.categories if known else (),
            is_class=is_class,
            decimal=self._readers[0][0].decimal,
        )

    def _type(self, profile: ColumnProfile) -> str:
        """Return the type that suits a column; numbers that count the rows are no identifier where they are a time.

        Raises:
            DataError: where the column of the time holds neither times nor numbers.
        """
        found = profile.type()
        if profile.name != self._roles["time"] or found in ("time", "number"):
            return found
        if profile.can_be("number"):
            return "number"
        what = f"of the type {found}" if profile.missing < profile.rows else "without a value"
        raise DataError(
            "The column of the time needs dates, times or numbers.",
            received=f"`{profile.name}` {what}",
            advice="Name another column, or write its cells as in 2026-11-27 or 2026-11-27T16:30:00.",
        )

    def _choose_target(self, profiles: Sequence[ColumnProfile]) -> Target | None:
        types = self._options["types"]
        if self._description is not None:
            schema = self._description.schema
            return (
                Target(
                    name=schema.target,
                    reason=schema.details.get("target_reason", ""),
                    is_class=bool(schema.class_names),
                    class_names=schema.class_names,
                )
                if schema.target
                else None
            )
        task = self._options["task"]
        name = self._options["target"]
        if task == "guess" and name and types.get(name) in ("category", "boolean", "number"):
            task = "number" if types[name] == "number" else "classes"
        return choose_target(profiles, name, task)

    def _key_column(self, profiles: Sequence[ColumnProfile]) -> int | None:
        """Return the place of the column that names the rows, None where none does."""
        if self._description is not None:
            profile = profiles[self._names.index(self._description.key)]
            whole = not profile.missing and not profile.has_repeats
            return self._names.index(profile.name) if whole else None
        types = {profile.name: self._options["types"].get(profile.name) or profile.type() for profile in profiles}
        return next(
            (
                index
                for index, profile in enumerate(profiles)
                if types[profile.name] == "identifier" and profile.is_unique
            ),
            None,
        )

    # ---- the second walk

    def _samples(self, reader: TextTable | ParquetTable, split: str) -> Iterator[Sample | Problem]:
        prefix = f"{reader.path.stem}/" if len(self._readers) > 1 else ""
        target = None if self._target is None else self._target.name
        numbers = class_numbers(self._target)
        row = -1
        for place, cells, reason, kind in self._rows(reader):
            if reason:
                yield Problem(key=place, kind=kind, reason=reason, left_out=True, split=split)
                continue
            row += 1
            values, label = self._values(cells, place, target)
            part = split_of(self._text(cells, "split")) or split
            if target is not None and label is None:
                yield self._without_target(place, cells, target, part)
                continue
            if numbers is not None and label not in numbers:
                reason = f"The class {str(label)[:40]!r} is none of those in `columns.json`."
                yield Problem(key=place, kind="unknown-class", reason=reason, left_out=True, split=part)
                continue
            self._count_missing(values)
            text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            yield Sample(
                key=f"{prefix}row-{row:06d}" if self._key is None else str(cells[self._key]),
                parts=(text.encode(),),
                label=_label(label, numbers),
                split=part,
                group=self._text(cells, "group"),
                time=self._seconds(cells),
            )

    def _without_target(self, place: str, cells: Sequence[Any], target: str, split: str) -> Problem:
        cell = cells[self._names.index(target)]
        is_none = is_missing(cell, self._missing)
        kind = "missing-value" if is_none else "bad-value"
        reason = f"The target `{target}` has no value." if is_none else f"The target `{target}` cannot be {cell!r}."
        return Problem(key=place, kind=kind, reason=reason, left_out=True, split=split)

    def _values(self, cells: Sequence[Any], place: str, target: str | None) -> tuple[list[Any], Any]:
        """Return the row's values and that of the target."""
        values, label = [], None
        for index, plan in self._plans:
            cell = cells[index]
            value = None
            if not is_missing(cell, self._missing):
                value = plan.convert(cell)
                if value is None:
                    plan.bad += 1
                    plan.first_bad = plan.first_bad or f"{str(cell)[:40]!r} in {place}"
            if plan.column.name == target:
                label = value
            values.append(value)
        return values, label

    def _text(self, cells: Sequence[Any], role: str) -> str:
        """Return what the column with a role says of a row, empty where it says nothing."""
        name = self._roles[role]
        cell = cells[self._names.index(name)] if name else None
        return "" if is_missing(cell, self._missing) else str(cell)

    def _seconds(self, cells: Sequence[Any]) -> float | None:
        if self._times is None:
            return None
        index, plan = self._times
        return None if is_missing(cells[index], self._missing) else _since_1970(plan.convert(cells[index]))

    def _count_missing(self, values: Sequence[Any]) -> None:
        for (_, plan), value in zip(self._plans, values, strict=True):
            plan.missing += value is None

    # ---- problems

    def _problems_of_files(self) -> Iterator[Problem]:
        known = set(self._names)  # a table may have tens of thousands of columns
        for reader, _ in self._readers:
            name = reader.path.name
            if isinstance(reader, TextTable):
                yield from encoding_problems(name, reader.encoding, self._options["encoding"])
                for heading in reader.repeated_names:
                    reason = f"Several columns are called `{heading}`; all but the first got an apostrophe."
                    yield Problem(key=name, kind="repeated-name", reason=reason)
            for column in getattr(reader, "left_out", ()):
                reason = f"The column `{column}` holds lists or bytes and is left out."
                yield Problem(key=name, kind="bad-column", reason=reason, names=1)
            for column in (each for each in reader.names if each not in known):
                reason = f"The column `{column}` is not in `{self._readers[0][0].path.name}`, and is left out."
                yield Problem(key=name, kind="bad-column", reason=reason, names=1, why=_ELSEWHERE)

    def _problems_of_columns(self, profiles: Sequence[ColumnProfile]) -> Iterator[Problem]:
        name = self._readers[0][0].path.name
        for profile in profiles:
            if profile.missing:
                rows = f"{profile.missing} of {profile.rows} rows"
                reason = f"The column `{profile.name}` has no value in {rows}, the first in {profile.first_missing}."
                yield Problem(key=name, kind="missing-value", reason=reason)
        for profile in (profiles[index] for index, plan in self._plans if plan.column.type == "time"):
            if profile.is_day_open:
                reason = (
                    f"The dates of the column `{profile.name}` are read with the month first; they can have the day "
                    "first as well: the option `dates` says which."
                )
                yield Problem(key=name, kind=DAY_OPEN, reason=reason)
        yield from self._leaks(profiles)
        if self._description is not None and self._key is None:
            reason = f"The column `{self._description.key}` does not name each row; they are numbered."
            yield Problem(key=name, kind="duplicate-key", reason=reason)

    def _leaks(self, profiles: Sequence[ColumnProfile]) -> Iterator[Problem]:
        """Yield the columns that a network need only copy to know the target."""
        kept = {plan.column.name for _, plan in self._plans}
        name = self._target.name if self._target else ""
        target = next((each for each in profiles if each.name == name), None)
        for profile in twins(target, profiles) if target is not None else ():
            if profile.name in kept:
                reason = (
                    f"The column `{profile.name}` determines the target `{name}`: each value of one belongs to one "
                    "value of the other. Exclude it with the option `exclude`, or a network learns nothing else."
                )
                yield Problem(key=self._readers[0][0].path.name, kind=LEAKING, reason=reason)

    def _problems_of_cells(self) -> Iterator[Problem]:
        name = self._readers[0][0].path.name
        for _, plan in self._plans:
            if plan.bad:
                column = f"`{plan.column.name}` of the type {plan.column.type}"
                reason = f"The column {column} has {plan.bad} cells that are none, the first {plan.first_bad}."
                yield Problem(key=name, kind="bad-value", reason=reason)

    def _check_names(self) -> None:
        if self._description is not None and self._description.key not in self._names:
            raise DataError(
                f"`{self._readers[0][0].path}` has no column `{self._description.key}`, which `columns.json` names."
            )
        excluded = [str(name) for name in self._options["exclude"]]
        named = [self._options["target"], *self._roles.values(), *self._options["types"], *excluded]
        for name in named:
            if name and name not in self._names and not (name == "none" and name == self._options["target"]):
                raise UnknownNameError("column of the table", name, self._names)
        for type_name in self._options["types"].values():
            if type_name not in COLUMN_TYPES:
                raise UnknownNameError("type of a column", str(type_name), COLUMN_TYPES)


def _split_column(profiles: Sequence[ColumnProfile]) -> str:
    """Return the name of a column that says the split of each row, empty where none does."""
    for profile in profiles:
        if profile.name.lower() == _SPLIT_COLUMN and profile.values and all(map(split_of, profile.categories())):
            return profile.name
    return ""


def _label(value: Any, numbers: Mapping[Any, int] | None) -> int | float | None:
    """Return the label: a class number, or a float, which cannot be mistaken for a class."""
    if value is None:
        return None
    return float(value) if numbers is None else numbers[value]


def _since_1970(value: Any) -> float | None:
    """Return a time in seconds; one without a zone is taken for universal time."""
    if isinstance(value, int | float):
        return float(value)
    iso = time_of(value, "iso")
    if iso is None:
        return None
    when = datetime.fromisoformat(iso)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _with_missing(plan: ColumnPlan) -> Column:
    column = plan.column
    return Column(name=column.name, type=column.type, categories=column.categories, missing=plan.missing)
