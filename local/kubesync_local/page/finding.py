"""Search by name, address or Service, cluster after cluster: a search that takes too long says where it stopped, and goes on from there."""

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.dns.addresses import parse_address
from kubesync.domain.dns.names import why_illegal
from kubesync_local.page.facts import OF_NAME, ClusterFacts, ServiceRow

MOST: Final = 100
_SHOWN_WORDS: Final = 3
MAX_TEXT: Final = 260


@dataclass(frozen=True, slots=True)
class Hit:
    """A Service that was found, and what of it matched (empty: its own key).

    ``states``: of each of the words the state of that name; empty: it is an address, or what a name leads to.
    """

    cluster: str
    row: ServiceRow
    words: tuple[str, ...]
    states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first; how many clusters were searched; ``next_cluster``: where to go on, empty at the end."""

    hits: tuple[Hit, ...]
    searched: int
    next_cluster: str
    failed: tuple[str, ...] = ()


def wanted_text(given: str) -> str:
    """What a person typed, in the form in which names and addresses are kept."""
    text = given.strip().lower().rstrip(".")[:MAX_TEXT]
    try:
        return ipaddress.ip_address(text).compressed
    except ValueError:
        return text


def search(
    text: str,
    configs: Sequence[ClusterConfig],
    read: Callable[[ClusterConfig], ClusterFacts | None],
    time_is_up: Callable[[], bool],
) -> Found:
    """Search clusters in their order.

    Args:
        text: of ``wanted_text``, not empty.
        read: the facts of a cluster with its Services; None: they cannot be read (in time).
    """
    hits: list[Hit] = []
    failed: list[str] = []
    for number, config in enumerate(configs):
        if number and (time_is_up() or len(hits) >= MOST):
            return Found(tuple(sorted(hits, key=_rank(text))), number, config.name, tuple(failed))
        known = read(config)
        if known is None:
            failed.append(config.name)
            continue
        hits += [hit for row in known.services if (hit := _hit(config.name, row, text)) is not None]
    return Found(tuple(sorted(hits, key=_rank(text))), len(configs), "", tuple(failed))


def _hit(cluster: str, row: ServiceRow, text: str) -> Hit | None:
    if text in f"{cluster}/{row.path}".lower():
        return Hit(cluster, row, ())
    if text not in row.words:
        return None
    parts = [line.partition(OF_NAME) for line in row.words.split("\n")]
    matching = [(word, (state or "applied") if name else "") for word, name, state in parts if text in word]
    matching.sort(key=lambda match: (match[0] != text, len(match[0])))
    shown = matching[:_SHOWN_WORDS]
    return Hit(cluster, row, tuple(word for word, _ in shown), tuple(state for _, state in shown)) if shown else None


def is_whole_name(text: str) -> bool:
    """Whether it is a DNS name that a zone may hold, and not a part of one, or of an address: no top-level domain is a number."""
    numeric = text.rpartition(".")[2].isdecimal()
    return "." in text and not numeric and parse_address(text) is None and not why_illegal(text, wildcard=True)


def has_name(found: Found, text: str) -> bool:
    """Whether some Service wants or has this name; or it is not known, as not all of them were searched."""
    if found.next_cluster or found.failed:
        return True
    return any(word == text and state for hit in found.hits for word, state in zip(hit.words, hit.states, strict=True))


def _rank(text: str) -> Callable[[Hit], tuple[bool, str, str]]:
    def rank(hit: Hit) -> tuple[bool, str, str]:
        path = hit.row.path.lower()
        name = path.partition("/")[2]
        exact = text in (f"{hit.cluster}/{path}", path, name, name.partition(":")[2] or name, *hit.words[:1])
        return not exact, hit.cluster, hit.row.path

    return rank
