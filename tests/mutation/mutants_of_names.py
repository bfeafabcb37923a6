"""Mechanisms that keep names with those to whom they belong: I9."""

from __future__ import annotations

from typing import Final

from mutation.mutant import Mutant

_PERMISSIONS = "unit/domain/dns/test_permissions.py::"
_RULES = "integration/names/test_name_rules.py::"
_FILE = "domain/dns/permissions.py"

OF_NAMES: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="any-domain",
        without="names outside the cluster's domains are not refused",
        invariants="I9",
        file=_FILE,
        old="    if outside := _why_outside(",
        new='    if outside := "" and _why_outside(',
        caught_by=(_RULES + "test_i9_table_of_rules",),
    ),
    Mutant(
        name="shortest-domain-decides",
        without="of nested domains the shortest decides",
        invariants="I9",
        file=_FILE,
        old="    for start in range(len(labels)):\n",
        new="    for start in reversed(range(len(labels))):\n",
        caught_by=(_PERMISSIONS + "test_longest_domain_decides", _RULES + "test_i9_table_of_rules"),
    ),
    Mutant(
        name="names-of-other-namespaces",
        without="names that the template gives to other namespaces are not reserved",
        invariants="I9",
        file=_FILE,
        old="    if any(namespace != key.namespace for namespace in _namespaces_of(name, rules)):\n",
        new="    if False:\n",
        caught_by=(_RULES + "test_i9_table_of_rules",),
    ),
    Mutant(
        name="one-reading",
        without="of several ways to read a name as the template only the first counts",
        invariants="I9",
        file=_FILE,
        old="    if any(namespace != key.namespace for namespace in _namespaces_of(name, rules)):\n",
        new="    if next(_namespaces_of(name, rules), key.namespace) != key.namespace:\n",
        caught_by=(_PERMISSIONS + "test_every_way_to_read_a_name_as_the_template_counts",),
    ),
    Mutant(
        name="journals-names-for-everybody",
        without="labels of the journal are not reserved",
        invariants="I9",
        file=_FILE,
        old="    if any(label.startswith(RESERVED_PREFIX) for label in labels):\n",
        new="    if rules is not None and any(label.startswith(RESERVED_PREFIX) for label in labels):\n",
        caught_by=(_RULES + "test_i9_table_of_rules",),
    ),
    Mutant(
        name="refused-names-are-published",
        without="refused names are reported, and published all the same",
        invariants="I9",
        file="domain/dns/desired.py",
        old="    if allowed.refused:\n        asked = replace(\n            asked,\n",
        new="    if allowed.refused:\n        replace(\n            asked,\n",
        caught_by=(
            _RULES + "test_i9_table_of_rules",
            _RULES + "test_i9_name_that_is_refused_while_its_service_waits_leaves_the_line",
        ),
    ),
)
