"""Kinds of directory entries, also of links that lead nowhere or to themselves."""

from __future__ import annotations

import os

__all__ = ["is_file_entry", "is_folder_entry"]


def is_folder_entry(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:  # a link to itself; one that leads nowhere raises nothing
        return False


def is_file_entry(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a file, or a link to one."""
    try:
        return entry.is_file()
    except OSError:
        return False
