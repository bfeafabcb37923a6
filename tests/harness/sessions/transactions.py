"""What the transactions of sessions hold, beside the simulation's own hooks."""

from typing import Any

from harness.deployment import Deployment
from harness.fakes.memory_store import Call
from kubesync.aws.dynamodb.store import STATE, Check, Key


class Transactions:
    """Every transaction of a deployment's sessions that took effect, in its order; may be cleared."""

    def __init__(self, deployment: Deployment) -> None:
        self.calls: list[Call] = []
        self._clock = deployment.world.clock
        self._machine = deployment.world.machine
        self._simulated: Any = deployment.store.faults
        deployment.store.faults = self

    def before(self, call: Call) -> None:
        self._simulated.before(call)

    def after(self, call: Call) -> None:
        if call.actions and self._machine.current.process is not self._clock:
            self.calls.append(call)
        self._simulated.after(call)

    def changing(self, prefix: str) -> list[Call]:
        """Those that change an item in a partition that begins so."""
        return [
            call
            for call in self.calls
            if any(a.key.partition.startswith(prefix) and not isinstance(a, Check) for a in call.actions)
        ]

    def of_keys(self) -> list[Call]:
        """Those that write keys' states."""
        return [call for call in self.calls if any(is_state(action.key) for action in call.actions)]


def is_state(key: Key) -> bool:
    """Whether a key's state is stored there."""
    return key.table == STATE and str(key.sort).startswith("key#")


def fences(call: Call) -> set[Key]:
    """The fences that a transaction checks."""
    return {action.key for action in call.actions if isinstance(action, Check)}
