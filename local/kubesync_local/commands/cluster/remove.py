"""``kubesync cluster remove``."""

import argparse

from kubesync.aws.dynamodb.store import Check
from kubesync.aws.tables.control.clusters import ClusterConfig, OnDelete, retains
from kubesync.aws.tables.state import StateTable
from kubesync.domain.errors import UsageError
from kubesync_local.plans.of_state import plan_of_removal
from kubesync_local.plans.plan import Plan, some
from kubesync_local.plans.view import show_for_question
from kubesync_local.registration.named_upstreams import NamedRegistry, referring_to
from kubesync_local.terminal.asking import can_ask, confirm
from kubesync_local.terminal.output import counted, remark
from kubesync_local.workplace.people import note
from kubesync_local.workplace.shards import unwatched
from kubesync_local.workplace.workplace import Workplace


def run(arguments: argparse.Namespace) -> int:
    """Mark the cluster as being deleted and signal the running session, which does the rest."""
    work = Workplace()
    config = work.chosen(arguments.name)[0]
    work = work.of(config)
    work.lease.bind(work.settings.deployment)
    wanted = {"deleting": True, **({"on_delete": OnDelete.RETAIN} if arguments.retain else {})}
    marked = config.model_copy(update=wanted)
    if config != marked:
        only_if = [] if config.deleting else unless_referred_to(config.name, NamedRegistry(work.store))
        if not arguments.yes and can_ask():
            show_for_question(removal := plan_of_removal(marked, work.store))
            confirm(_question(marked, removal))
        before = config.on_delete.value if config.deleting else None
        config = work.clusters.put(marked, only_if)
        note(work, config.name, "cluster remove", [("deleting", before, config.on_delete.value)])
    work.lease.signal()
    held = not work.lease.read().is_free(int(work.now() * 1000))
    who = (
        "the running session does it now" if held else unwatched(work.store, config.shard) or "the next session does it"
    )
    remark(f"cluster {config.name} is being removed, {_outputs(work, config)}; {who}")
    return 0


def _question(config: ClusterConfig, plan: Plan) -> str:
    if plan.kept is not None:
        records, upstreams = plan.kept
        return f"Remove cluster {config.name}, and keep its {some(records, 'record set')} and {some(upstreams, 'upstream')}?"
    return f"Remove cluster {config.name}? {plan.question}" if plan.numbers else f"Remove cluster {config.name}?"


def _outputs(work: Workplace, config: ClusterConfig) -> str:
    """How much is removed or stays: the last chance to see that this is the wrong cluster."""
    states = list(StateTable(work.store).load_all(config.name))
    records, upstreams = sum(len(state.applied) for state in states), sum(len(state.upstreams) for state in states)
    what = f"its {records} record set{'' if records == 1 else 's'} and {counted(upstreams, 'upstream')}"
    if retains(config):
        return f"{what} stay"
    return f"with {what}" + (" (`--retain` keeps those that are left)" if records or upstreams else "")


def unless_referred_to(cluster: str, named: NamedRegistry) -> list[Check]:
    """Check that no named upstream uses a Service of the cluster, now and when the mark is written. Raises UsageError."""
    registry = named.read()
    if names := referring_to(registry, cluster):
        raise UsageError(
            f"cluster {cluster} has Services in named upstream{'s' if len(names) > 1 else ''} {', '.join(names)}: first take them "
            "out (`kubesync upstream add NAME ... --replace`) or remove the named upstream (`kubesync upstream remove NAME`)"
        )
    return [named.unchanged(registry)]
