"""Mutants of the port for sources: the kind of a key, shared objects with their readers, and forms that older releases leave alone."""

from __future__ import annotations

from typing import Final

from mutation.mutant import Mutant

_TOY: Final = "integration/sources/test_toy_source.py::"

OF_SOURCES: Final = (
    Mutant(
        name="kinds-share-keys",
        without="an object of another kind has the key of the Service of its name",
        invariants="I3 I9",
        file="domain/objects.py",
        old="""        return cls(cluster, namespace, name) if of_kind is None else cls(cluster, namespace, of_kind[2], of_kind[1])
""",
        new="""        return cls(cluster, namespace, name) if of_kind is None else cls(cluster, namespace, of_kind[2])
""",
        caught_by=(
            _TOY + "test_key_says_its_kind_unless_it_is_a_service",
            _TOY + "test_toy_and_service_that_want_one_name_wait_for_each_other",
        ),
    ),
    Mutant(
        name="reader-is-not-in-the-index",
        without="nothing says durably which keys read a shared object",
        invariants="I1",
        file="cluster/keys/planner.py",
        old="""        pieces += reading(before, after)
""",
        new="",
        caught_by=(
            _TOY + "test_plan_waits_for_the_box_and_follows_it",
            _TOY + "test_i1_session_that_dies_at_any_write_leaves_the_readers_of_a_box_to_the_next",
        ),
    ),
    Mutant(
        name="readers-are-not-noted",
        without="a session that dies between a shared object and its readers leaves no note to plan them",
        invariants="I1",
        file="cluster/keys/shared.py",
        old="""    pieces = [Piece((table.mark_changed(cluster, ref, number),)) for ref in read]
""",
        new="""    pieces: list[Piece] = []
""",
        caught_by=(_TOY + "test_i1_session_that_dies_at_any_write_leaves_the_readers_of_a_box_to_the_next",),
    ),
    Mutant(
        name="older-release-serves-other-sources",
        without="a release that knows no other source takes the keys of a cluster's other kinds for Services that do not exist",
        invariants="I5",
        file="kubesync_local/workplace/registry.py",
        old="""        schema = SCHEMA if stored.sources == USUAL_SOURCES else SCHEMA_OF_SOURCES
""",
        new="""        schema = SCHEMA
""",
        caught_by=(
            _TOY + "test_configuration_and_unit_with_another_source_have_a_form_that_older_releases_leave_alone",
        ),
    ),
    Mutant(
        name="older-release-settles-other-kinds",
        without="a release that knows no other kind settles a batch of units whose keys it cannot read",
        invariants="I2",
        file="aws/tables/control/inflight.py",
        old="""            schema = SCHEMA_OF_KINDS
""",
        new="""            pass
""",
        caught_by=(
            _TOY + "test_configuration_and_unit_with_another_source_have_a_form_that_older_releases_leave_alone",
        ),
    ),
)
