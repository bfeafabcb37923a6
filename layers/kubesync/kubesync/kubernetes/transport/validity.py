"""Reads from when until when certificates (DER, PEM) and tokens (JWT) are valid. Nothing is verified, and only dates leave.

Python's ``ssl`` gives the dates of authorities and of a peer, but not of a client's own certificate. So certificates are read here.
"""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime
from typing import Final

from kubesync.domain.credential_ends import Validity

# 9999-12-31 23:59:59 UTC, the last date that a certificate can name (RFC 5280 section 4.1.2.5).
_LAST: Final = 253_402_300_799
_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----")
_INTEGER, _UTC_TIME, _GENERALIZED_TIME, _SEQUENCE, _VERSION = 0x02, 0x17, 0x18, 0x30, 0xA0


def of_pem(pem: str) -> list[Validity]:
    """The validities of all certificates in a PEM text, in order. Unreadable ones are left out."""
    found: list[Validity] = []
    for block in _BLOCK.findall(pem):
        try:
            validity = of_der(base64.b64decode(block))
        except ValueError:
            continue
        if validity is not None:
            found.append(validity)
    return found


def of_der(der: bytes) -> Validity | None:
    """The validity of a certificate (RFC 5280 section 4.1). None: the bytes are no certificate."""
    try:
        _, at, _ = _element(der, 0, _SEQUENCE)
        _, at, _ = _element(der, at, _SEQUENCE)
        tag, _, end = _element(der, at)
        at = end if tag == _VERSION else at
        for wanted in (_INTEGER, _SEQUENCE, _SEQUENCE):  # serialNumber, signature, issuer
            _, _, at = _element(der, at, wanted)
        _, at, _ = _element(der, at, _SEQUENCE)
        starts_at, at = _time(der, at)
        ends_at, _ = _time(der, at)
    except (IndexError, ValueError):
        return None
    return Validity(ends_at, starts_at)


def _element(der: bytes, at: int, wanted: int | None = None) -> tuple[int, int, int]:
    """The tag of the element at a place, and where its content begins and ends. Raises IndexError or ValueError."""
    tag, length = der[at], der[at + 1]
    at += 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(der[at : at + size])
        at += size
    if (wanted is not None and tag != wanted) or at + length > len(der):
        raise ValueError
    return tag, at, at + length


def _time(der: bytes, at: int) -> tuple[float, int]:
    tag, begins, ends = _element(der, at)
    text = der[begins:ends].decode("ascii")
    if tag == _UTC_TIME:  # two digits of the year: 50 to 99 are 1950 to 1999
        text = ("19" if text[:2] >= "50" else "20") + text
    if tag not in (_UTC_TIME, _GENERALIZED_TIME) or not re.fullmatch(r"[0-9]{14}Z", text):
        raise ValueError
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp(), ends


def of_token(token: str) -> Validity | None:
    """The validity of a JWT (RFC 7519: ``exp``, and ``iat`` or ``nbf``). None: it is no JWT, or names no end."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    if not isinstance(claims, dict) or (ends_at := _date(claims.get("exp"))) is None:
        return None
    starts_at = _date(claims.get("iat"))
    return Validity(ends_at, _date(claims.get("nbf")) if starts_at is None else starts_at)


def _date(value: object) -> float | None:
    """A NumericDate, in whole seconds. None: anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LAST:
        return None
    return float(int(value))
