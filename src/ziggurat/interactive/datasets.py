"""Dataset in a Python session: what is in it, with a few of its images."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ziggurat.formatting import plural
from ziggurat.interactive.frames import frame
from ziggurat.interactive.home import Home
from ziggurat.interactive.markup import bars, block, facts, image_tag, table
from ziggurat.workspace.training_checks import DIGITS, known_data

__all__ = ["Dataset"]

_IMAGES: Final = 12
_MOST_CLASSES: Final = 20
_SIDE_PX: Final = 72


class Dataset:
    """A finished dataset.

    Args:
        home: place of the dataset.
        id: id in a studio; without one, the path of its folder; or ``digits``.

    Attributes:
        home: the same.
        id: the same.
    """

    def __init__(self, home: Home, id: str) -> None:  # noqa: A002 - the word of every face
        self.home = home
        self.id = id
        self._about = _digits() if id == DIGITS else home.describe_dataset(id)

    @property
    def name(self) -> str:
        """Name that pages show."""
        return str(self._about["name"])

    @property
    def kind(self) -> str:
        """Kind, such as ``image-classification``, ``detection`` or ``table``."""
        return str(self._about["kind"])

    @property
    def splits(self) -> dict[str, int]:
        """Split → number of samples."""
        return dict(self._about["splits"])

    @property
    def classes(self) -> list[str]:
        """Names of the classes, by number."""
        return [str(each["name"]) for each in self._about["classes"]]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of a table, the target among them."""
        return [str(each["name"]) for each in self._about.get("columns") or []]

    @property
    def problems(self) -> dict[str, int]:
        """Kind of problem → number of samples that have it."""
        return dict(self._about.get("problems") or {})

    @property
    def warnings(self) -> list[str]:
        """Sentences on what may spoil a training."""
        return [str(each) for each in self._about.get("warnings") or []]

    @property
    def folder(self) -> Path:
        """Folder of the dataset, on the machine of its home."""
        return Path(self._about["folder"])

    @property
    def page(self) -> str:
        """Address of its page in the studio; empty without a studio."""
        return "" if self.id == DIGITS else self.home.page(self.id)

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each class, or without classes one for each split.

        Raises:
            MissingDependencyError: if pandas is not installed.
        """
        rows = [{"split": split, "samples": count} for split, count in self.splits.items()]
        return frame(self._about["classes"] or rows)

    def __repr__(self) -> str:
        splits = ", ".join(f"{split} {count:,}" for split, count in self.splits.items())
        classes = [plural(len(self.classes), "class", "classes")] if self.classes else []
        return f"Dataset({', '.join([repr(self.name), self.kind, *classes, splits])})"

    def _repr_html_(self) -> str:
        images = [] if self.id == DIGITS else self.home.sample_images(self.id, _IMAGES)
        drawn = "".join(image_tag(content, label, side_px=_SIDE_PX) for label, content in images)
        pairs = [("Kind", self.kind), *((split, f"{count:,}") for split, count in self.splits.items())]
        warned = "".join(f"<p>{_text(each)}</p>" for each in self.warnings)
        row = f'<div class="zr-row">{drawn}</div>' if drawn else ""
        return block(self.name, facts([*pairs, ("Page", self.page)]), row, self._classes_html(), warned)

    def _classes_html(self) -> str:
        rows = self._about["classes"][:_MOST_CLASSES]
        if not rows:
            columns = self._about.get("columns") or []
            return (
                table([(str(each["name"]), str(each["type"])) for each in columns], ("column", "type"))
                if columns
                else ""
            )
        counts = [(str(row["name"]), int(row.get("train", 0))) for row in rows]
        largest = max(count for _, count in counts)
        more = len(self.classes) - len(rows)
        rest = f'<p class="zr-soft">and {plural(more, "more class", "more classes")}</p>' if more else ""
        if not largest:  # of masks, classes are not counted
            return facts([("Classes", ", ".join(name for name, _ in counts))]) + rest
        return bars((name, count / largest, f"{count:,}") for name, count in counts) + rest


def _digits() -> dict[str, Any]:
    """Return what the data is that comes with Ziggurat."""
    known = known_data(DIGITS, {})
    classes = [
        {"name": name, "train": count} for name, count in zip(known.class_names, known.class_counts, strict=True)
    ]
    return {"name": DIGITS, "kind": known.kind, "splits": known.sizes, "classes": classes, "folder": DIGITS}


def _text(sentence: str) -> str:
    return facts([("Warning", sentence)])
