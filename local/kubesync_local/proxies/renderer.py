"""From snapshots to the text of files."""

from collections.abc import Callable, Mapping
from enum import StrEnum

from kubesync_local.proxies.bounds import NO_BOUNDS, Bounds, Place
from kubesync_local.proxies.formats.form import Form
from kubesync_local.proxies.left_out import LeftOut
from kubesync_local.proxies.servers import Snapshot, choose
from kubesync_local.proxies.table.items import UnreadUpstream


class WhenEmpty(StrEnum):
    """What an upstream without a ready node becomes."""

    BACKUP = "backup"  # nodes that are not ready take traffic; without any node as EMPTY
    EMPTY = "empty"  # no server takes traffic: clients get an error at once
    KEEP = "keep"  # its last servers stay; if none are known as EMPTY


class Renderer:
    """Snapshots to files. Remembers each block until its snapshot changes.

    Args:
        said: called with a line about last servers that do not stay.
    """

    def __init__(
        self,
        form: Form,
        zone: str,
        when_empty: WhenEmpty,
        said: Callable[[str], None],
        left_out: LeftOut,
        bounds: Bounds = NO_BOUNDS,
    ) -> None:
        self.form = form
        self.left_out = left_out
        self._bounds = bounds
        self._zone = zone
        self._when_empty = when_empty
        self._said = said
        self._known: dict[str, tuple[Snapshot, str]] = {}
        self._last: dict[str, str] = {}
        # Of those: an address in no network that is allowed. This block is not taken.
        self._outside: dict[str, str] = {}
        # Servers that the file has, though their addresses are not for pods. They stay as long as their nodes do.
        self._standing: dict[str, frozenset[Place]] = {}

    def remember(self, files: Mapping[str, str]) -> None:
        """Take blocks of upstreams from these files where needed: without ready nodes for ``KEEP``, or if they cannot be read."""
        self._last = self.form.blocks(files)
        for key, block in self._last.items():
            places = self.form.places(block)
            outside = min((place for place in places if not self._bounds.allow(place[0])), default=None)
            if outside is not None:
                self._outside[key] = outside[0].text
            if standing := frozenset(place for place in places if self._bounds.why_forbidden(place[0])):
                self._standing[key] = standing

    def holds_servers(self, files: Mapping[str, str]) -> bool:
        """Whether these files have servers of an upstream, or text that this format did not write."""
        blocks = self.form.blocks(files)
        if blocks:
            return any(self.form.has_servers(block) for block in blocks.values())
        empty = self.form.files({}).values()
        return any(text.strip() and text not in empty for text in files.values())

    def files(self, snapshots: Mapping[str, Snapshot]) -> dict[str, str]:
        """The files for these upstreams, by name."""
        blocks = {key: self._block(snapshot) for key, snapshot in snapshots.items()}
        self._known = {key: (snapshots[key], block) for key, block in blocks.items() if block is not None}
        self.left_out.forget_all_but(self._known)
        self.left_out.report()
        for key in self._standing.keys() - snapshots.keys():
            del self._standing[key]
        return self.form.files({key: block for key, (_, block) in self._known.items()})

    def _block(self, snapshot: Snapshot) -> str | None:
        """None: it cannot be read, and nothing is known of it."""
        key = snapshot.key
        known = self._known.get(key)
        if known is not None and known[0] is snapshot:
            return known[1]
        if isinstance(snapshot, UnreadUpstream):
            return self._last_block(key)
        chosen = choose(
            snapshot.nodes,
            self._zone,
            last_resort=self._when_empty is WhenEmpty.BACKUP,
            bounds=self._bounds,
            standing=self._standing.get(key, ()),
        )
        self.left_out.note(key, chosen.tally)
        if not chosen.usable and self._when_empty is WhenEmpty.KEEP:
            kept = known[1] if known is not None else self._last_block(key)
            if kept is not None:
                return kept
        self._standing.pop(key, None)
        if chosen.tally.standing:
            self._standing[key] = frozenset(chosen.tally.standing)
        return self.form.block(key, snapshot.version, chosen.servers)

    def _last_block(self, key: str) -> str | None:
        if outside := self._outside.pop(key, ""):
            del self._last[key]
            self._said(f"{key}: its last servers do not stay: {outside} is in no network of --allow-cidr")
        return self._last.get(key)
