"""``kubesync upstream``: registers, shows, holds and removes named upstreams. The running session composes them."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from kubesync.aws.tables.audit import NAMED
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.named_upstreams import Registry
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.errors import UsageError
from kubesync.domain.upstreams.named import NamedUpstream, StaticNode, named_key
from kubesync_local.commands.upstream.form import read_holder, read_members
from kubesync_local.documents.named_upstream import NamedDocument
from kubesync_local.registration.named_upstreams import NamedRegistry
from kubesync_local.terminal.output import counted, print_document, print_rows, print_table, remark
from kubesync_local.workplace.people import note
from kubesync_local.workplace.workplace import Workplace

LIST: Final = ("name", "upstream", "members", "version", "nodes", "held_by", "included_in", "state")
_MEMBERS: Final = ("member", "weight", "backup", "nodes", "ready", "reason")


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    work = Workplace()
    _ACTIONS[arguments.action](arguments, work, NamedRegistry(work.store))
    return 0


def _add(arguments: argparse.Namespace, work: Workplace, named: NamedRegistry) -> None:
    work.lease.bind(work.settings.deployment)
    name = arguments.name
    wanted = NamedUpstream(name, read_members(arguments))
    registry = named.read()
    known = registry.named.get(name)
    if known is not None and not arguments.replace:
        raise UsageError(f"named upstream {name} is already registered: --replace changes it (give all its members)")
    if known is None and arguments.replace and name not in registry.unreadable:
        raise UsageError(f"there is no named upstream {name} to replace: leave out --replace")
    _refuse_forbidden(wanted, known)
    clusters = _clusters(wanted, {config.name: config for config in work.clusters.all()})
    shard = _shard(wanted, clusters, registry, work.settings.shard)
    registered = replace(wanted, shard=shard)
    named.put(registered, registry, [work.clusters.unchanged(c) for c in clusters.values()])
    LeaseTable(work.store, shard).signal()
    note(work, NAMED, "upstream add", [(named_key(name), _members(known), _members(registered))])
    done = "changed" if known is not None else "registered"
    remark(f"named upstream {name} {done}: {counted(len(wanted.members), 'member')}, for proxies as {named_key(name)}")
    standing = UpstreamTable(work.store).current([source.upstream for source in wanted.services])
    for source in wanted.services:
        if source.upstream not in standing:
            remark(f"there is no upstream {source} yet: it adds no nodes until its Service exists and has that port")


def _refuse_forbidden(wanted: NamedUpstream, known: NamedUpstream | None) -> None:
    """No upstream newly gets an address that belongs to the host, its link or its cloud. A node that is registered already stays."""
    stands = {member.source for member in known.members} if known is not None else set()
    for source in (member.source for member in wanted.members if member.source not in stands):
        if isinstance(source, StaticNode) and source.address.forbidden:
            raise UsageError(f"--static {source}: no upstream gets such an address ({source.address.forbidden})")


def _clusters(wanted: NamedUpstream, configs: Mapping[str, ClusterConfig]) -> dict[str, ClusterConfig]:
    """The clusters of its Services. Each must be registered, and not being removed."""
    found: dict[str, ClusterConfig] = {}
    for source in wanted.services:
        config = configs.get(source.key.cluster)
        if config is None:
            known = ", ".join(sorted(configs)) or "none yet, see `kubesync cluster add --help`"
            raise UsageError(f"{source}: there is no cluster {source.key.cluster!r}; registered: {known}")
        if config.deleting:
            raise UsageError(f"{source}: cluster {config.name} is being removed")
        found[config.name] = config
    return found


def _shard(wanted: NamedUpstream, clusters: Mapping[str, ClusterConfig], registry: Registry, own: str) -> str:
    """The shard whose master composes it: the shard of all its members."""
    places = {f"cluster {name}": config.shard for name, config in sorted(clusters.items())}
    included = [name for name in wanted.includes if name in registry.named]
    places |= {f"named upstream {name}": registry.named[name].shard for name in included}
    shards = sorted(set(places.values()))
    if len(shards) > 1:
        said = "; ".join(f"{place} belongs to {shard}" for place, shard in places.items())
        raise UsageError(f"all members of a named upstream must belong to one shard: {said}")
    known = registry.named.get(wanted.name)
    return shards[0] if shards else known.shard if known is not None else own


def _list(arguments: argparse.Namespace, work: Workplace, named: NamedRegistry) -> None:
    registry = named.read()
    rows = [NamedDocument(name, registry, UpstreamTable(work.store)).row() for name in sorted(registry.named)]
    rows += [{"name": name, "state": "written by a newer release"} for name in sorted(registry.unreadable)]
    if arguments.output == "table":
        rows = [{**row, "members": [_in_words(member) for member in row.get("members", [])]} for row in rows]
    empty = "no named upstream is registered: see `kubesync upstream add --help`"
    print_rows(rows, LIST, arguments.output, empty, sort=arguments.sort)


def _show(arguments: argparse.Namespace, work: Workplace, named: NamedRegistry) -> None:
    registry = named.read()
    named.known(arguments.name, registry)
    found = NamedDocument(arguments.name, registry, UpstreamTable(work.store))
    lease = LeaseTable(work.store, registry.named[arguments.name].shard).read()
    document = found.document(running=not lease.is_free(int(work.now() * 1000)))
    if arguments.output != "table":
        print_document(document, arguments.output)
        return
    rows = [{**member, "member": member.get("service") or member.get("upstream") or member["static"]}
            for member in document["members"]]  # fmt: skip
    title = f"{document['upstream']}, {document['state']}"
    print_table(rows, _MEMBERS, title, first=True)
    for problem in document["problems"]:
        remark(f"{problem['reason']} {problem['subject']}: {problem['message']}")
    for text, who in (("held by", document["held_by"]), ("included in", document["included_in"])):
        if who:
            remark(f"{text} {', '.join(who)}")


def _in_words(member: Mapping[str, object]) -> str:
    source = member.get("service") or member.get("upstream") or member["static"]
    weight = f" weight {member['weight']}" if "weight" in member else ""
    return f"{source}{weight}{' backup' if 'backup' in member else ''}"


def _remove(arguments: argparse.Namespace, work: Workplace, named: NamedRegistry) -> None:
    work.lease.bind(work.settings.deployment)
    registry = named.read()
    named.remove(arguments.name, registry)
    note(work, NAMED, "upstream remove", [(named_key(arguments.name), _members(registry.named[arguments.name]), None)])
    shard = registry.named[arguments.name].shard
    LeaseTable(work.store, shard).signal()
    held = not LeaseTable(work.store, shard).read().is_free(int(work.now() * 1000))
    who = "the running session removes it from the table now" if held else "the next session removes it from the table"
    remark(f"named upstream {arguments.name} is removed; {who}")


def _members(registered: NamedUpstream | None) -> str | None:
    return None if registered is None else ", ".join(str(member) for member in registered.members)


def _hold(arguments: argparse.Namespace, work: Workplace, named: NamedRegistry) -> None:
    who = read_holder(arguments.by)
    fresh = named.hold(arguments.name, who, named.read())
    if fresh:
        note(work, NAMED, "upstream hold", [(f"{named_key(arguments.name)} held by", None, who)])
    remark(f"named upstream {arguments.name} is {'' if fresh else 'already '}held by {who}")


def _release(arguments: argparse.Namespace, work: Workplace, named: NamedRegistry) -> None:
    who = read_holder(arguments.by)
    named.release(arguments.name, who, named.read())
    note(work, NAMED, "upstream release", [(f"{named_key(arguments.name)} held by", who, None)])
    remark(f"named upstream {arguments.name} is no longer held by {who}")


type _Action = Callable[[argparse.Namespace, Workplace, NamedRegistry], None]

_ACTIONS: Final[Mapping[str, _Action]] = {
    "add": _add,
    "list": _list,
    "show": _show,
    "remove": _remove,
    "hold": _hold,
    "release": _release,
}
