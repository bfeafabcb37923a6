"""Why kubesync does not want a record set that external-dns made, as far as the clusters' lists can tell.

``docs/migration.md`` says what to do with each answer.
"""

from collections.abc import Collection, Iterable, Mapping, Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.keys.key_states import rules_of
from kubesync.domain.dns.annotations import read_annotations
from kubesync.domain.dns.desired import DnsRules
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.domain.sources.registry import main_part
from kubesync.domain.state import KeyState
from kubesync_local.sources.options import OF_SOURCES, in_words
from kubesync_local.sources.port import SourceWords
from kubesync_local.sources.registry import WORDS


@dataclass(frozen=True, slots=True)
class Seen:
    """An object of a cluster, with what kubesync reports of it."""

    value: Any
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What one cluster asks for.

    Args:
        sources: the kinds of objects that it publishes (``--sources``).
        wanted: sets that its objects want.
        held: sets of kubesync's own.
        seen: its objects.
    """

    rules: DnsRules
    sources: Collection[str]
    wanted: AbstractSet[RecordKey]
    held: AbstractSet[RecordKey]
    seen: Mapping[ObjectKey, Seen]


def view_of(config: ClusterConfig, states: Iterable[KeyState], claimed: Iterable[RecordKey] = ()) -> ClusterView:
    """The view of a cluster in these states. ``claimed``: sets taken over since the states were read."""
    wanted: set[RecordKey] = set()
    held: set[RecordKey] = set(claimed)
    seen: dict[ObjectKey, Seen] = {}
    for state in states:
        wanted.update(state.intended)
        held.update(state.applied)
        main = main_part(state)
        if main is not None and main.value is not None:
            seen[state.key] = Seen(main.value, state.problems)
    return ClusterView(rules_of(config), config.sources, wanted, held, seen)


@dataclass(frozen=True, slots=True)
class Answer:
    """Why a set is not wanted. ``service``: the key of the object that external-dns names, if a cluster has it."""

    why: str
    service: str = ""
    cluster: str = ""


def why_not_wanted(key: RecordKey, record_set: RecordSet, resource: str, views: Collection[ClusterView]) -> Answer:
    """Why none of these clusters wants a set of their zone.

    Args:
        resource: as the registry names it, such as ``service/shop/web``.
    """
    source, _, place = resource.partition("/")
    namespace, _, name = place.partition("/")
    words = next((each for each in WORDS.values() if each.kind.option == (source or "service")), None)
    if words is None:
        known = in_words(each.objects for each in OF_SOURCES.values())
        return Answer(f"made of {source} {place}: kubesync reads only {known}")
    kind = words.kind
    if not any(kind.option in view.sources for view in views):
        left_out = OF_SOURCES[kind.option].objects
        return Answer(f"made of {kind.option} {place}: the cluster's --sources leave {left_out} out")
    for view in views:
        cluster = view.rules.cluster
        of = ObjectKey(cluster, namespace, name, kind.name)
        if of in view.seen:
            return Answer(_why(key, record_set, of, words, view), str(of), cluster)
    return Answer(f"no {kind.name} of this cluster asks for it")


def _why(key: RecordKey, record_set: RecordSet, of: ObjectKey, words: SourceWords, view: ClusterView) -> str:
    """The first of these that is true of an object that is there.

    it is left out by an annotation, or has none in a cluster with opt-in
    it has a problem with this name
    what its kind says (``SourceWords.why_not_wanted``)
    a set of another type is wanted at this name
    it has another problem, or nothing to publish
    """
    value, rules = view.seen[of].value, view.rules
    asked = read_annotations(value.annotations, rules.annotation_prefixes)
    if asked.exclude:
        return f"kubesync.io/exclude leaves the {of.kind} out"
    if rules.opt_in and not asked.include:
        return f"the cluster is opt-in, and the {of.kind} has no kubesync.io/include"
    problems = [problem for problem in view.seen[of].problems if problem.code != "Conflict"]
    if of_name := [problem for problem in problems if problem.subject == key.name]:
        return f"{of_name[0].code}: {of_name[0].message}"
    if (why := words.why_not_wanted(key, record_set, of, value, asked, rules)) is not None:
        return why
    if any(each.place == key.place for each in view.wanted):
        return "kubesync wants another type at this name"
    if problems:
        return f"{problems[0].code}: {problems[0].message}"
    return "kubesync has nothing to publish at this name"
