"""Owns what a browser may do with what comes from a TensorBoard: it shows what users' networks wrote, at our address.

TensorBoard cannot be kept in an origin of its own (``sandbox`` without ``allow-same-origin``): it reads
``localStorage`` when it starts, which fails there, and it shows "Data could not be loaded" (tried with TensorBoard 2.21
and Chromium). So its pages are of our origin, and are kept from using that:

- Nothing inline runs, except scripts whose hashes TensorBoard itself names; it needs ``eval`` in its own scripts.
- Scripts, frames and requests reach only what stands below the address of this TensorBoard: not the API of the studio,
  which would take the reader's cookie. There are no forms, no windows and no top frames to steer.
- All that is no page (pictures, numbers, files of the user) is a ``sandbox`` without anything where it is opened by
  itself: a picture in SVG that has a script runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["protecting_headers"]

_PAGE: Final = (
    "default-src 'self'; script-src {place} 'unsafe-eval'{hashes}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src {place}; worker-src {place}; frame-src {place}; "
    "object-src 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'self'; "
    "sandbox allow-scripts allow-same-origin allow-downloads"
)
_OTHER: Final = "default-src 'none'; frame-ancestors 'none'; sandbox"
_PLAIN_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?")
_HASH: Final = re.compile(r"'sha(?:256|384|512)-[A-Za-z0-9+/_-]+={0,2}'")


def protecting_headers(answer: Mapping[str, str], host: str, path: str) -> dict[str, str]:
    """Return the headers that go with an answer of a TensorBoard.

    Args:
        answer: headers of TensorBoard; names in small letters.
        host: that the browser asked for, with its port.
        path: below which this TensorBoard stands, without a slash at its end.
    """
    if not answer.get("content-type", "").lower().startswith("text/html"):
        return {"Content-Security-Policy": _OTHER}
    # A policy has no way to write addresses of IPv6.
    place = f"{host}{path}/" if _PLAIN_HOST.fullmatch(host) else "'self'"
    hashes = "".join(f" {each}" for each in _HASH.findall(answer.get("content-security-policy", "")))
    return {
        "Content-Security-Policy": _PAGE.format(place=place, hashes=hashes),
        "X-Frame-Options": "SAMEORIGIN",
    }
