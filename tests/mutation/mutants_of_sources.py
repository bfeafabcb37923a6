"""Mutants of Ingresses and of the port for sources: kinds of keys, shared objects with readers, forms that older releases leave alone."""

from typing import Final

from mutation.mutant import Mutant

_TOY: Final = "integration/sources/test_toy_source.py::"
_OF_COMMANDS: Final = "integration/sources/test_ingresses_in_commands.py::"
_ING: Final = "integration/sources/test_ingresses.py::"
_ABSENT: Final = "integration/causes/test_absent_apis.py::"
_ROWS: Final = "unit/domain/dns/test_dns_cases.py::test_row_of_the_contract"

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
        old="""        pieces += index_updates(before, after)
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
        old="        of_kinds = max(kind.schema for kind in stored.kinds)\n",
        new="        of_kinds = 1\n",
        caught_by=(
            _TOY + "test_configuration_and_unit_with_another_source_have_a_form_that_older_releases_leave_alone",
        ),
    ),
    Mutant(
        name="older-release-settles-other-kinds",
        without="a release that knows no other kind settles a batch of units whose keys it cannot read",
        invariants="I2",
        file="aws/tables/control/inflight.py",
        old="        versions += [max(SCHEMA_OF_KINDS, KINDS[kind].schema) for kind in kinds]\n",
        new="",
        caught_by=(
            _TOY + "test_configuration_and_unit_with_another_source_have_a_form_that_older_releases_leave_alone",
        ),
    ),
    Mutant(
        name="ingress-of-any-class",
        without="Ingresses of other classes than --ingress-class are published",
        invariants="I9",
        file="domain/sources/ingresses.py",
        old="    return not rules.ingress_class or ingress.class_name in rules.ingress_class\n",
        new="    return True\n",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="any-hostname-source",
        without="an annotation ingress-hostname-source that means nothing counts as missing",
        invariants="I9",
        file="domain/sources/ingresses.py",
        old="    if only not in (None, _ANNOTATION_ONLY, _HOSTS_ONLY):\n",
        new="    if False:\n",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="rules-of-ingresses-always-read",
        without="--ignore-ingress-rules-spec has no effect",
        invariants="I9",
        file="domain/sources/ingresses.py",
        old=' or ("--ignore-ingress-rules-spec" if rules.ignore_ingress_rules_spec else "")\n',
        new="\n",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="tls-of-ingresses-always-read",
        without="--ignore-ingress-tls-spec has no effect",
        invariants="I9",
        file="domain/sources/ingresses.py",
        old=' or ("--ignore-ingress-tls-spec" if rules.ignore_ingress_tls_spec else "")\n',
        new="\n",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="published-names-left-out",
        without="explain says of names that an annotation asks for that they are left out",
        invariants="I10",
        file="kubesync_local/sources/ingresses.py",
        old="for name in names if name not in wanted))\n",
        new="for name in names))\n",
        caught_by=(_OF_COMMANDS + "test_explain_says_which_hosts_of_a_published_ingress_are_not_used",),
    ),
    Mutant(
        name="excluded-networks-are-published",
        without="--exclude-target-net has no effect",
        invariants="I9",
        file="domain/dns/publishing.py",
        old="        if self.excluded and lies_in(address, self.excluded):\n",
        new="        if False:\n",
        caught_by=(_ROWS,),
    ),
    Mutant(
        name="ingress-has-the-name-of-a-service",
        without="an Ingress gets the name that the template gives to the Service of its name, outside the domains too",
        invariants="I9",
        file="domain/dns/permissions.py",
        old="        if self.template == NO_NAMES or key.kind != SERVICE:\n",
        new="        if self.template == NO_NAMES:\n",
        caught_by=("unit/domain/dns/test_permissions.py::test_i9_ingress_has_no_name_by_the_template",),
    ),
    Mutant(
        name="kind-that-is-read-no-more-stays",
        without="record sets of a source that is taken out stay for ever",
        invariants="I1",
        file="cluster/keys/planner.py",
        old="        if self._states.config.deleting or kind.main not in views:\n",
        new="        if self._states.config.deleting:\n",
        caught_by=(_ING + "test_service_that_waits_for_an_ingress_gets_the_name_when_the_source_is_taken_out",),
    ),
    Mutant(
        name="ingresses-alone-know-no-identity",
        without="a cluster without Services is not asked for its identity",
        invariants="I5",
        file="cluster/keys/list_diff.py",
        old="    remembers = listed or not config.lists_services\n",
        new="    remembers = listed\n",
        caught_by=(_ING + "test_i5_list_of_ingresses_of_another_cluster_deletes_nothing",),
    ),
    Mutant(
        name="ingresses-alone-remember-no-identity",
        without="a cluster without Services does not remember its identity",
        invariants="I5",
        file="cluster/keys/list_diff.py",
        old="        remembers = services is not None or not self._states.config.lists_services\n",
        new="        remembers = services is not None\n",
        caught_by=(_ING + "test_i5_list_of_ingresses_of_another_cluster_deletes_nothing",),
    ),
    Mutant(
        name="absent-api-fails",
        without="a cluster that never served an API has a listener that fails for ever",
        invariants="I10",
        file="session/health.py",
        old="""        0.0 if view.absent or view.works(epoch) else""",
        new="""        0.0 if view.works(epoch) else""",
        caught_by=(_ABSENT + "test_i10_api_that_was_never_served_is_a_remark_and_raises_no_alarm",),
    ),
    Mutant(
        name="api-that-is-gone-is-absent",
        without="an API that is not served any more is taken for one that never was, in silence",
        invariants="I10",
        file="cluster/listener.py",
        old="""            view.absent = absent and view.checkpoint is None
""",
        new="""            view.absent = absent
""",
        caught_by=(
            _ABSENT + "test_i5_i10_api_that_was_served_before_is_an_error_with_an_alarm_and_nothing_is_deleted",
        ),
    ),
    Mutant(
        name="wrong-address-is-absent",
        without="a server that answers 404 to everything raises no alarm",
        invariants="I10",
        file="cluster/keys/key_states.py",
        old="""if view.absent and listed)""",
        new="""if view.absent)""",
        caught_by=(_ABSENT + "test_i10_cluster_of_which_nothing_was_ever_listed_raises_an_alarm",),
    ),
    Mutant(
        name="absence-counts-as-failing-later",
        without="another error of an absent API counts since the API is absent",
        invariants="I10",
        file="cluster/listener.py",
        old="""                view.failing_since = 0.0  # while its API was absent, that was no fault
""",
        new="""                pass
""",
        caught_by=(_ABSENT + "test_i10_server_that_goes_away_after_an_absent_api_raises_no_alarm_for_a_moment",),
    ),
    Mutant(
        name="ingress-that-wants-no-name-keeps-all",
        without="an Ingress whose annotation leaves out all of its names keeps their claims, and nobody else gets them",
        invariants="I9",
        file="domain/sources/ingresses.py",
        old="    if names is None:  # while nobody can tell",
        new="    if not names:  # while nobody can tell",
        caught_by=(
            "integration/names/test_names_that_are_kept.py::test_i9_name_of_an_ingress_goes_to_who_waits_when_the_ingress_asks_for_none",
        ),
    ),
    Mutant(
        name="gone-api-is-left-out-of-lists",
        without="a plan leaves out an API that is not served any more, and says nothing",
        invariants="I5",
        file="operations/listing.py",
        old="""            if resource in listed or not listed:
""",
        new="""            if not listed:
""",
        caught_by=(
            "integration/sources/test_ingresses_in_commands.py::test_i5_api_that_is_gone_is_a_failed_step_and_a_failed_plan",
        ),
    ),
)
