"""Whether an answer without any upstream is believed.

A deleted upstream leaves its item, with a mark, for a week. So the items prove that this is the right table and that it is whole, also
if all of them are marked. If there is no item at all of what was asked for, a name or the deployment may be wrong, or the table was made
again:

items of what was asked for     the file or directory       what happens
---------------------------     ---------------------       ------------
at least one, perhaps marked    any                         it is rendered
none                            has no server to lose       what there is is rendered, and a line says so
none                            has servers, or is foreign  it stays, and a line says so

A name that was given, of which neither the table nor the file has anything, may be misspelt. ``--watch`` then ends when it has rendered
the others, unless it was told to wait for such names.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubesync.domain.errors import KubesyncError
from kubesync_local.proxies.files.output import Output
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.watching import Source

_ADVICE: Final = "is the name right, and the deployment?"


class UnknownNameError(KubesyncError):
    """An upstream or a cluster was named that is not in the table, and was not rendered before."""


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

    def unknown(self, known: Collection[str]) -> list[str]:
        """Names that were given and of which there is no item, not even of a deleted upstream: perhaps they are misspelt.

        Args:
            known: upstreams and clusters that have one.
        """
        return [name for name in dict.fromkeys([*self.keys, *self.clusters]) if name not in known]

    def line(self, unknown: str, nearest: str) -> str:
        """About such a name. ``nearest``: which one may be meant; empty: none resembles it."""
        what = "" if self.keys else "no upstream of cluster "
        return f"{what}{unknown} is {'not ' if self.keys else ''}in the table; {f'did you mean {nearest}?' if nearest else _ADVICE}"

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
        nearest: says which name of the table resembles one.
        waits: for names that are not in the table.
    """

    def __init__(
        self,
        asked: Asked,
        source: Source,
        output: Output,
        said: Callable[[str], None],
        nearest: Callable[[str], str],
        *,
        waits: bool,
    ) -> None:
        self._asked = asked
        self._nearest = nearest
        self._waits = waits
        self._source = source
        self._output = output
        self._said = said
        self._begun = self._doubted = False
        #: Why nothing is written; empty: it is.
        self.problem = ""

    def offer(self, snapshots: Mapping[str, Snapshot]) -> bool:
        """See ``Output.offer``. While the answer is not believed: False, so that it is offered again.

        Raises:
            UnknownNameError: at the first offer.
        """
        if not self._begun:
            self._refuse_unknown(snapshots)
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

    def _refuse_unknown(self, snapshots: Mapping[str, Snapshot]) -> None:
        """What was rendered once is not misspelt: the table may have lost it, or it was deleted long ago."""
        if self._waits or self._doubted:
            return
        rendered = self._output.upstreams
        unknown = self._asked.unknown({*self._source.known, *rendered, *(key.split("/")[0] for key in rendered)})
        if not unknown:
            return
        if self._source.proven:  # a proxy that starts beside it needs the others
            self._output.offer({key: each for key, each in snapshots.items() if key not in unknown})
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        line = self._asked.line(f"{unknown[0]}{more}", self._nearest(unknown[0]))
        raise UnknownNameError(f"{line} --ignore-not-found waits for it")

    def settle(self) -> None:
        """See ``Output.settle``."""
        self._output.settle()
