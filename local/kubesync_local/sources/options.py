"""What ``kubesync cluster add`` asks about each kind of objects.

Every command reads this to build its help: import nothing here that takes time (``dataclasses`` does).
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple


class SourceOption(NamedTuple):
    """An option for one kind of objects. ``ClusterConfig`` and ``DnsRules`` have a field of the same name.

    Args:
        metavar: of an option that takes a list; empty: it is a switch.
        such: what its list may hold, for the message about an empty one.
    """

    name: str
    help: str
    metavar: str = ""
    such: str = ""

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return f"--{self.name.replace('_', '-')}"


class SourceOptions(NamedTuple):
    """A kind of objects that ``--sources`` may name. ``objects``: what people call several of them."""

    objects: str
    options: tuple[SourceOption, ...] = ()


OF_SOURCES: Final[Mapping[str, SourceOptions]] = {
    "service": SourceOptions("Services"),
    "ingress": SourceOptions(
        "Ingresses",
        (
            SourceOption(
                "ingress_class",
                "only Ingresses of these classes: C[,C...]; may be given several times (default: all)",
                metavar="C",
                such="classes, such as alb,nginx",
            ),
            SourceOption("ignore_ingress_rules_spec", "no names from spec.rules of Ingresses"),
            SourceOption("ignore_ingress_tls_spec", "no names from spec.tls of Ingresses"),
        ),
    ),
}
"""By what ``--sources`` calls the kind (``Kind.option``)."""

OPTIONS: Final = tuple(chain.from_iterable(source.options for source in OF_SOURCES.values()))
"""The options of all kinds."""


def in_words(objects: Iterable[str]) -> str:
    """Several kinds of objects in a sentence, such as ``Services and Ingresses``."""
    *others, last = objects
    return f"{', '.join(others)} and {last}" if others else last


NAMERS: Final = in_words(["annotations", *(source.objects for name, source in OF_SOURCES.items() if name != "service")])
"""What gives names where the cluster has no template."""
