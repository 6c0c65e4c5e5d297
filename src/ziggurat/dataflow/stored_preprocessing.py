"""Preprocessing in the folder of a job, for those whose definition is JSON values."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from ziggurat.atomic import atomic_write_text
from ziggurat.errors import DataError

__all__ = ["StoredPreprocessing"]

_JSON_NAME: Final = "preprocessing.json"


class StoredPreprocessing:
    """Writes its JSON values into a folder, and reads them back."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """Return the definition as JSON values."""

    @classmethod
    @abstractmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return what ``as_json`` gave.

        Raises:
            DataError: where it is damaged.
        """

    def save(self, folder: Path) -> None:
        """Write ``preprocessing.json`` into a folder.

        Raises:
            StorageError: where that is not possible.
        """
        atomic_write_text(folder / _JSON_NAME, json.dumps(self.as_json(), indent=1), "The preprocessing")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the preprocessing that ``save`` wrote.

        Raises:
            DataError: where it is not there or damaged.
        """
        try:
            content = json.loads((folder / _JSON_NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(
                f"The folder {folder} must hold the preprocessing of its model.",
                received=str(error),
                advice="Use the folder of a job that has begun to train.",
            ) from error
        return cls.from_json(content)
