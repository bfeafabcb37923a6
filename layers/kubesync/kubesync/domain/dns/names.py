"""DNS names: their canonical form, which names are legal, which zones a name belongs to."""

import re
from collections.abc import Iterable
from typing import Final

from kubesync.domain.dns.records import Zone

# RFC 1035 2.3.4; 255 octets leave 253 characters in presentation form without the trailing dot.
MAX_LABEL_CHARACTERS: Final = 63
MAX_NAME_CHARACTERS: Final = 253

# RFC 1123 host names, plus underscores anywhere (SRV owner names, and names in actual use).
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")
_SHORT_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_SHORT_LABEL}(?:\.{_SHORT_LABEL})*")
FIELDS: Final = ("service", "namespace", "domain", "cluster")
"""What the template of a cluster's names may hold, in braces."""
NO_NAMES: Final = "none"
"""The template that gives no names: Services have only the names that their annotations ask for."""
_PLACEHOLDER: Final = re.compile(rf"\{{({'|'.join(FIELDS)})\}}")


def canonical_name(text: str) -> str:
    """Lower case, no surrounding space, no trailing dot. Does not check whether the name is legal.

    Only ASCII is folded: some other characters, such as the Kelvin sign, have an ASCII lower case but must stay illegal.
    """
    text = text.strip()
    if text.isascii():
        text = text.lower()
    return text.removesuffix(".")


def why_illegal(name: str, *, wildcard: bool = False) -> str:
    """Why a canonical name cannot be published, in one line; empty if it can.

    ``wildcard``: accept ``*`` as the whole first label (Route 53 knows no other wildcard).
    """
    if len(name) <= MAX_NAME_CHARACTERS and _NAME.fullmatch(name):
        return ""
    if not name:
        return "the name is empty"
    if len(name) > MAX_NAME_CHARACTERS:
        return f"the name has {len(name)} characters, the limit is {MAX_NAME_CHARACTERS}"
    labels = name.split(".")
    if wildcard and labels[0] == "*" and len(labels) > 1:
        labels = labels[1:]
    for label in labels:
        if not label:
            return "a label is empty"
        if len(label) > MAX_LABEL_CHARACTERS:
            return f"a label has {len(label)} characters, the limit is {MAX_LABEL_CHARACTERS}"
        if _LABEL.fullmatch(label) is None:
            return f"label {label!r} is not made of letters, digits, '_' and inner '-'"
    return ""


def zones_of(name: str, zones: Iterable[Zone]) -> tuple[Zone, ...]:
    """Every zone with the longest matching suffix of ``name``, sorted by id; empty if none matches.

    There are several if zones have the same name, such as a public and a private one.
    """
    fitting = [zone for zone in zones if name == zone.name or name.endswith("." + zone.name)]
    longest = max((len(zone.name) for zone in fitting), default=0)
    return tuple(sorted({zone for zone in fitting if len(zone.name) == longest}))


def service_name(template: str, *, service: str, namespace: str, domain: str, cluster: str) -> str:
    """The canonical name of a service: fills in ``{service}``, ``{namespace}``, ``{domain}`` and ``{cluster}``.

    Other text in braces stays. It makes the name illegal, so that the name is reported and not published.
    """
    values = {"service": service, "namespace": namespace, "domain": canonical_name(domain), "cluster": cluster}
    return canonical_name(_PLACEHOLDER.sub(lambda match: values[match[1]], template))
