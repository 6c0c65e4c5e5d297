"""Security headers for TensorBoard's responses, which show content of users' networks on the studio's origin.

TensorBoard cannot run in an origin of its own (``sandbox`` without ``allow-same-origin``): it reads
``localStorage`` when it starts, which fails there, and it shows "Data could not be loaded" (tried with TensorBoard
2.21 and Chromium). So its pages have the studio's origin, and these headers keep them from using it:

- No inline code runs, except scripts whose hashes TensorBoard itself names; it needs ``eval`` in its own scripts.
- Scripts, frames and requests reach only paths below the URL of this TensorBoard: not the API of the studio, which
  would accept the reader's cookie. Forms, new windows and navigation of the top frame are blocked.
- Every response that is not a page (images, numbers, files of the user) gets a ``sandbox`` without permissions when
  it is opened by itself: an SVG image with a script runs nothing.
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
