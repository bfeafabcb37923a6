"""What was left out of the upstreams, in lines for a person."""

import math
from collections.abc import Callable, Mapping
from typing import Final

from kubesync_local.proxies.bounds import STANDING, Tally, Why, total_by_reason

# Upstreams that are named at once. The others are counted.
_MOST_NAMED: Final = 20
# While pods come and go, numbers change every second. Other reasons, or the first one, are said at once.
_NUMBERS_SAID_SECONDS: Final = 60.0


class LeftOut:
    """What is left out now, and what was said of it.

    Args:
        max_nodes: of each upstream, for the words.
        said: called with lines for a person.
        now: monotonic seconds.
    """

    def __init__(self, max_nodes: int | None, said: Callable[[str], None], now: Callable[[], float]) -> None:
        self._max_nodes = max_nodes
        self._say = said
        self._now = now
        self._nodes: dict[str, int] = {}
        # Only of upstreams with something to say.
        self._tallies: dict[str, Tally] = {}
        self._said: dict[str, tuple[frozenset[str], str]] = {}
        self._changed: set[str] = set()
        self._numbers_said_at = -math.inf

    def note(self, key: str, tally: Tally) -> None:
        """An upstream was rendered."""
        self._nodes[key] = tally.nodes
        if tally.says_something or key in self._tallies:
            self._changed.add(key)
        if tally.says_something:
            self._tallies[key] = tally
        else:
            self._tallies.pop(key, None)

    def forget_all_but(self, keys: Mapping[str, object]) -> None:
        """The other upstreams are no longer rendered."""
        for known in (self._nodes, self._tallies, self._said):
            for key in [key for key in known if key not in keys]:
                del known[key]

    def by_reason(self) -> Mapping[Why, int]:
        """How many nodes are left out now, for each reason."""
        return total_by_reason(self._tallies.values())

    @property
    def upstreams(self) -> int:
        """Of how many upstreams nodes are left out now."""
        return sum(1 for tally in self._tallies.values() if tally.left_out)

    @property
    def standing(self) -> int:
        """How many servers stay only because the file had them."""
        return sum(len(tally.standing) for tally in self._tallies.values())

    def report(self) -> None:
        """Say what changed: at once if nodes are left out for another reason than before, once a minute if only numbers changed.

        Cheap if nothing changed. Call it now and then: numbers that wait are said then.
        """
        other, numbers, over = [], [], []
        for key in self._changed:
            tally = self._tallies.get(key)
            reasons, text = self._said.get(key, (frozenset(), ""))
            if tally is None:
                over += [key] if key in self._said else []
            elif tally.reasons != reasons:
                other.append(key)
            elif self._words(tally) != text:
                numbers.append(key)
        if self._now() >= self._numbers_said_at + _NUMBERS_SAID_SECONDS:
            other, numbers = other + numbers, []
        self._changed = set(numbers)
        if not other and not over:
            return
        self._numbers_said_at = self._now()
        for key in other:
            self._said[key] = (self._tallies[key].reasons, self._words(self._tallies[key]))
        other.sort(key=lambda key: (-self._tallies[key].total, key))
        lines = [f"{key}: {self._words(self._tallies[key])}" for key in other]
        for key in sorted(over):
            reasons, _ = self._said.pop(key)
            stood = reasons == {STANDING}
            lines.append(
                f"{key}: {'no node stays only because the file had it' if stood else 'no node is left out any more'}"
            )
        for line in lines[:_MOST_NAMED]:
            self._say(line)
        if len(lines) > _MOST_NAMED:
            self._say(f"and {len(lines) - _MOST_NAMED} more upstreams")
        if other and self.upstreams > 1:
            total = sum(tally.total for tally in self._tallies.values())
            nodes = sum(self._nodes.values())
            self._say(f"in sum {total} of {nodes} nodes left out, of {self.upstreams} of {len(self._nodes)} upstreams")

    def _words(self, tally: Tally) -> str:
        parts = [f"{number} {self._reason(why, tally)}" for why in Why if (number := tally.left_out.get(why))]
        said = [f"{tally.total} of {tally.nodes} nodes left out: {', '.join(parts)}"] if parts else []
        if tally.standing:
            first, *more = tally.standing.values()
            stays = f"1 node stays only because the file had it: {first}"
            if more:
                stays = f"{len(tally.standing)} nodes stay only because the file had them, such as {first}"
            said.append(stays)
        return "; ".join(said)

    def _reason(self, why: Why, tally: Tally) -> str:
        match why:
            case Why.INVALID:
                return "whose address, port, weight or state is not valid"
            case Why.NOT_ALLOWED:
                return f"in no network of --allow-cidr, such as {tally.examples[why]}"
            case Why.FORBIDDEN:
                return f"with an address that is not for pods, such as {tally.examples[why]}"
            case Why.OVER_LIMIT:
                return f"over --max-nodes {self._max_nodes}"
