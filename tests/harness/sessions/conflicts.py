"""Names of one zone that are in conflict, over whole sessions that hand over to one another."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from harness.deployment import Deployment
from kubesync.aws.tables.state import StateTable
from kubesync_local.documents.audit_log import AuditLog, Span
from simulation.gate import Outward

SESSION_SECONDS: Final = 840.0
HOUR: Final = 3600.0
LISTING_SECONDS, BATCH_SECONDS = 0.1, 0.2
# They are few beside the calls that tests count.
_SETTINGS: Final = {"batch_elements": 1000, "lease_renew_seconds": 5.0}


class Conflicts(Deployment):
    """Services ``web-<n>`` at names where somebody else's sets stand. A session runs. Route 53 takes its time.

    ``on_list``: called before record sets are listed.
    """

    def __init__(self, names: int) -> None:
        super().__init__(settings=_SETTINGS)
        self.names = [f"web-{number:04d}" for number in range(names)]
        self.on_list: Callable[[], object] = lambda: None
        self._counted: Counter[str] = Counter()
        for name in self.names:
            self.by_hand("CREATE", name, "A", "192.0.2.1")
            self.want(name, "10.0.0.1")
        self.start()

    def sessions(self, seconds: float, *, each: float = SESSION_SECONDS) -> None:
        """A session every 840 seconds, for so long; the last one runs.

        Args:
            each: how long each of them lasts. Nothing runs until the next one.
        """
        while seconds > 0:
            self.pass_time(min(seconds, each))
            self.end()
            self.pass_time(max(min(seconds, SESSION_SECONDS) - each, 0.0))
            self.start()
            seconds -= SESSION_SECONDS

    def free(self, *names: str) -> None:
        """A person removes the foreign sets."""
        for name in names:
            self.by_hand("DELETE", name, "A")

    def conflicts(self) -> set[str]:
        """Services with a name in conflict, as stored."""
        return {state.key.name for state in StateTable(self.store).load_all("prod") if state.conflicts}

    def refused(self, name: str) -> list[str]:
        """What the audit says about refusals of a Service in the last day, the oldest first."""
        now = self.world.clock.epoch_seconds()
        rows = AuditLog(self.store).read_changes("prod", now, Span(now - 86_400, now))
        said = [row["message"] for row in rows if row["kind"] == "refused" and row["service"].endswith(f"/{name}")]
        return said[::-1]

    def counts(self) -> Counter[str]:
        """Calls since this was asked last: by the operation of DynamoDB or Route 53, and by the kind of a write."""
        found, self._counted = self._counted, Counter()
        return found

    def _before(self, call: Outward) -> None:
        self._counted[call.what.split(" ")[0]] += 1
        self._counted[call.kind] += 1
        if call.what.startswith("List"):
            self.on_list()
            self.hold(LISTING_SECONDS)
        elif call.what.startswith("Change"):
            self.hold(BATCH_SECONDS)
        super()._before(call)
