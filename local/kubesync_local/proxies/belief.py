"""Whether an answer without any upstream is believed.

A deleted upstream leaves its item, with a mark, for a week. So the items prove that this is the right table and that it is whole, also
if all of them are marked. If there is no item at all of what was asked for, a name or the deployment may be wrong, or the table was made
anew:

items of what was asked for     the file or directory       what happens
---------------------------     ---------------------       ------------
at least one, perhaps marked    any                         it is rendered
none                            has no server to lose       what there is is rendered, and a line says so
none                            has servers, or is foreign  it stays, and a line says so
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubesync_local.proxies.files.output import Output
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.watching import Source

_ADVICE: Final = "is the name right, and the deployment?"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asked for: upstreams by their keys, or by clusters (none: all), namespaces (none: all) and protocols."""

    keys: Sequence[str]
    clusters: Sequence[str]
    protocols: Sequence[str]
    namespaces: Sequence[str] = ()

    def stays(self, place: Path) -> str:
        """A line: nothing of it is in the table, so the last configuration stays."""
        return f"{self._nothing()}: {place} stays as it is; {_ADVICE}"

    def absent(self, found: Mapping[str, Snapshot], *, proven: bool) -> list[str]:
        """Lines about what is rendered without nodes, or not at all.

        Args:
            proven: whether an item of what was asked for was seen.
        """
        if self.keys:
            absent = [key for key, each in found.items() if not each.present]
            return [f"{key} is not in the table, or deleted: rendered without nodes" for key in absent]
        return [] if proven else [f"{self._nothing()}: rendered without any; {_ADVICE}"]

    def missing(self, found: Mapping[str, Snapshot]) -> list[str]:
        """Lines about names that were given and of which the table has no item, not even of a deleted upstream: perhaps they are misspelt."""
        lines = [f"{key} was never in the table; {_ADVICE}" for key, each in found.items() if not each.has_item]
        known = {key.split("/")[0] for key, each in found.items() if each.has_item}
        clusters = [name for name in dict.fromkeys(self.clusters) if name not in known]
        return lines + [f"no upstream of cluster {name} is in the table; {_ADVICE}" for name in clusters]

    def _nothing(self) -> str:
        keys = list(dict.fromkeys(self.keys))
        if len(keys) == 1:
            return f"{keys[0]} is not in the table"
        if keys:
            return (
                f"none of {', '.join(keys[:3])}{f' and {len(keys) - 3} more' if len(keys) > 3 else ''} is in the table"
            )
        of_cluster = f" of cluster {_either(self.clusters)}" if self.clusters else ""
        in_namespace = f" in namespace {_either(self.namespaces)}" if self.namespaces else ""
        return f"no {_either(self.protocols)} upstream{of_cluster}{in_namespace} is in the table"


def _either(names: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(names))


class BelievedOutput:
    """An output that gets nothing before an item was seen, if it has something to lose. Then everything: from then on an upstream that
    goes missing is lost, and its source keeps it. Implements ``watching.Target``.

    Args:
        said: called with lines for a person.
    """

    def __init__(self, asked: Asked, source: Source, output: Output, said: Callable[[str], None]) -> None:
        self._asked = asked
        self._source = source
        self._output = output
        self._said = said
        self._begun = self._doubted = False
        #: Why nothing is written; empty: it is.
        self.problem = ""

    def offer(self, snapshots: Mapping[str, Snapshot]) -> bool:
        """See ``Output.offer``. While the answer is not believed: False, so that it is offered again."""
        if not self._begun:
            proven = self._source.proven
            if not proven and self._output.holds_servers:
                self.problem = self._asked.stays(self._output.place)
                if not self._doubted:
                    self._said(self.problem)
                self._doubted = True
                self._output.settle()
                return False
            self._begun, self.problem = True, ""
            for line in self._asked.absent(snapshots, proven=proven):
                self._said(line)
        return self._output.offer(snapshots)

    def settle(self) -> None:
        """See ``Output.settle``."""
        self._output.settle()
