"""From snapshots to the text of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from kubesync_local.proxies.formats.form import Form
from kubesync_local.proxies.servers import Chosen, Snapshot, choose
from kubesync_local.proxies.table.items import UnreadUpstream


class WhenEmpty(StrEnum):
    """What an upstream without a ready node becomes."""

    BACKUP = "backup"  # nodes that are not ready take traffic; without any node as EMPTY
    EMPTY = "empty"  # no server takes traffic: clients get an error at once
    KEEP = "keep"  # its last servers stay; if none are known as EMPTY


class Renderer:
    """Snapshots to files. Remembers each block until its snapshot changes.

    Args:
        said: called once for each upstream with invalid nodes.
    """

    def __init__(self, form: Form, zone: str, when_empty: WhenEmpty, said: Callable[[str], None]) -> None:
        self.form = form
        self._zone = zone
        self._when_empty = when_empty
        self._said = said
        self._known: dict[str, tuple[Snapshot, str]] = {}
        self._last: dict[str, str] = {}
        self._refused: dict[str, int] = {}

    def remember(self, files: Mapping[str, str]) -> None:
        """Take blocks of upstreams from these files where needed: without ready nodes for ``KEEP``, or if they cannot be read."""
        self._last = self.form.blocks(files)

    def holds_servers(self, files: Mapping[str, str]) -> bool:
        """Whether these files have servers of an upstream, or text that this format did not write."""
        blocks = self.form.blocks(files)
        if blocks:
            return any(self.form.has_servers(block) for block in blocks.values())
        empty = self.form.files({}).values()
        return any(text.strip() and text not in empty for text in files.values())

    def files(self, snapshots: Mapping[str, Snapshot]) -> dict[str, str]:
        """The files for these upstreams, by name."""
        self._known = {
            key: self._block(snapshot) for key, snapshot in snapshots.items() if not self._is_unknown(snapshot)
        }
        return self.form.files({key: block for key, (_, block) in self._known.items()})

    def _is_unknown(self, snapshot: Snapshot) -> bool:
        return isinstance(snapshot, UnreadUpstream) and snapshot.key not in self._last

    def _block(self, snapshot: Snapshot) -> tuple[Snapshot, str]:
        known = self._known.get(snapshot.key)
        if known is not None and known[0] is snapshot:
            return known
        if isinstance(snapshot, UnreadUpstream):
            return snapshot, self._last[snapshot.key]
        chosen = choose(snapshot.nodes, self._zone, last_resort=self._when_empty is WhenEmpty.BACKUP)
        self._report(snapshot.key, chosen)
        if not chosen.usable and self._when_empty is WhenEmpty.KEEP:
            kept = known[1] if known is not None else self._last.get(snapshot.key)
            if kept is not None:
                return snapshot, kept
        return snapshot, self.form.block(snapshot.key, snapshot.version, chosen.servers)

    def _report(self, key: str, chosen: Chosen) -> None:
        if chosen.refused and self._refused.get(key) != chosen.refused:
            self._said(f"{key}: {chosen.refused} nodes left out: their address, port, weight or state is not valid")
        self._refused[key] = chosen.refused
