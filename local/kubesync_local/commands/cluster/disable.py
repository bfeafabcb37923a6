"""``kubesync cluster disable`` and ``kubesync cluster enable``."""

import argparse

from kubesync.domain.errors import UsageError
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.people import note
from kubesync_local.workplace.workplace import Workplace


def run(arguments: argparse.Namespace) -> int:
    """Change the mark and signal the running session. Writes nothing if the mark is already right."""
    work = Workplace()
    config = work.chosen(arguments.name)[0]
    work = work.of(config)
    work.lease.bind(work.settings.deployment)
    disabled = arguments.command == "disable"
    if config.deleting:
        raise UsageError(f"cluster {config.name} is being removed: it cannot be disabled or enabled")
    if config.disabled == disabled:
        remark(f"cluster {config.name} is already {'disabled' if disabled else 'enabled'}")
        return 0
    work.clusters.put(config.model_copy(update={"disabled": disabled}))
    change = ("disabled", str(config.disabled).lower(), str(disabled).lower())
    note(work, config.name, f"cluster {arguments.command}", [change])
    work.lease.signal()
    if disabled:
        remark(f"cluster {config.name} is disabled: its record sets and upstreams stay as they are")
        return 0
    held = not work.lease.read().is_free(int(work.now() * 1000))
    who = "the running session lists it now" if held else "the next session lists it"
    remark(f"cluster {config.name} is enabled; {who}")
    return 0
