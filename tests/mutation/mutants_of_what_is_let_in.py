"""Mechanisms that keep addresses, domains and TTLs out that nobody may newly have: I9, and I6 at an update."""

from __future__ import annotations

from typing import Final

from mutation.mutant import Mutant

OF_WHAT_IS_LET_IN: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="no-forbidden-address",
        without="no address is forbidden",
        invariants="I9",
        file="domain/dns/addresses.py",
        old="            return why\n",
        new='            return ""\n',
        caught_by=(
            "unit/domain/dns/test_addresses.py::test_address_of_a_host_itself_or_of_its_link_is_forbidden",
            "integration/names/test_addresses_let_in.py::test_i9_nobody_is_newly_pointed_at_such_an_address",
        ),
    ),
    Mutant(
        name="services-of-aws-are-addresses",
        without="the addresses at which AWS gives credentials over IPv6 are let in",
        invariants="I9",
        file="domain/dns/addresses.py",
        old='    "reserved for services of AWS": "fd00:ec2::/32",\n',
        new="",
        caught_by=("unit/domain/dns/test_addresses.py::test_address_of_a_host_itself_or_of_its_link_is_forbidden",),
    ),
    Mutant(
        name="nat64-hides-an-address",
        without="a forbidden address is let in as IPv6, through NAT64",
        invariants="I9",
        file="domain/dns/addresses.py",
        old="    if family == 6 and number >> 32 == _NAT64:\n",
        new="    if False:\n",
        caught_by=(
            "unit/domain/dns/test_addresses.py::test_address_of_a_host_itself_or_of_its_link_is_forbidden",
            "integration/names/test_addresses_let_in.py::test_i9_whatever_a_tenant_draws_only_what_is_let_in_stands",
        ),
    ),
    Mutant(
        name="forbidden-addresses-are-published",
        without="a record gets a forbidden address",
        invariants="I9",
        file="domain/dns/publishing.py",
        old="        return stands\n",
        new="        return stands or (() if outside else zones)\n",
        caught_by=("integration/names/test_addresses_let_in.py::test_i9_nobody_is_newly_pointed_at_such_an_address",),
    ),
    Mutant(
        name="update-withdraws-what-stands",
        without="an update withdraws forbidden addresses that stand",
        invariants="I9",
        file="domain/dns/publishing.py",
        old="        return stands\n",
        new="        return ()\n",
        caught_by=("integration/names/test_addresses_let_in.py::test_i6_i9_update_leaves_what_stands_and_reports_it",),
    ),
    Mutant(
        name="what-stands-once-stands-everywhere",
        without="a forbidden address that stands at one name gets to others",
        invariants="I9",
        file="domain/dns/publishing.py",
        old="address.text in held.get((zone.id, name), ())]\n",
        new="any(address.text in found for found in held.values())]\n",
        caught_by=("integration/names/test_addresses_let_in.py::test_i9_what_stands_is_no_way_in_for_more",),
    ),
    Mutant(
        name="what-stands-inside-gets-outside",
        without="a forbidden address that stands in a private zone gets into a public one of the same name",
        invariants="I9",
        file="domain/dns/publishing.py",
        old="address.text in held.get((zone.id, name), ())]\n",
        new="any(address.text in found for (_, of), found in held.items() if of == name)]\n",
        caught_by=(
            "integration/names/test_addresses_let_in.py::test_i9_what_stands_in_one_zone_is_new_in_another_of_the_same_name",
        ),
    ),
    Mutant(
        name="forbidden-nodes-come-in",
        without="an upstream that stands gets forbidden addresses",
        invariants="I9",
        file="domain/upstreams/nodes.py",
        old=" for name, nodes in asked if held.digests[name] == nodes.digest}\n",
        new=" for name, nodes in asked}\n",
        caught_by=("integration/names/test_addresses_let_in.py::test_i9_what_stands_is_no_way_in_for_more",),
    ),
    Mutant(
        name="update-drops-nodes",
        without="an update drops forbidden nodes that stand",
        invariants="I9",
        file="domain/upstreams/nodes.py",
        old=" for name, nodes in asked if held.digests[name] == nodes.digest}\n",
        new=" for name, nodes in asked if False}\n",
        caught_by=("integration/names/test_addresses_let_in.py::test_i6_i9_update_leaves_what_stands_and_reports_it",),
    ),
    Mutant(
        name="endpoints-from-anywhere",
        without="endpoints outside the cluster's networks count",
        invariants="I9",
        file="domain/dns/endpoints.py",
        old="            elif not lies_in(address, networks):\n",
        new="            elif False:\n",
        caught_by=(
            "integration/names/test_addresses_let_in.py::test_networks_of_a_cluster_hold_for_all_sources_and_a_change_of_them_counts_at_once",
        ),
    ),
    Mutant(
        name="targets-anywhere",
        without="addresses outside the cluster's networks are published",
        invariants="I9",
        file="domain/dns/publishing.py",
        old='        outside = "" if lies_in(address, self.networks) else "outside --target-net-filter"\n',
        new='        outside = ""\n',
        caught_by=(
            "integration/names/test_addresses_let_in.py::test_networks_of_a_cluster_hold_for_all_sources_and_a_change_of_them_counts_at_once",
        ),
    ),
    Mutant(
        name="srv-to-hosts-without-address",
        without="SRV records name hosts whose addresses are left out",
        invariants="I9",
        file="domain/sources/services.py",
        old="            publish_headless_srv(name, service, shown, usable, plan)\n",
        new="            publish_headless_srv(name, service, shown, host_names, plan)\n",
        caught_by=(
            "integration/names/test_addresses_let_in.py::test_i9_whatever_a_tenant_draws_only_what_is_let_in_stands",
        ),
    ),
    Mutant(
        name="domain-for-everybody",
        without="the domain of the Services itself needs no option",
        invariants="I9",
        file="domain/dns/permissions.py",
        old="    if name in rules.reserved and not rules.apex:\n",
        new="    if False:\n",
        caught_by=(
            "unit/domain/dns/test_permissions.py::test_reserved_domain_needs_the_option_of_the_apex_i9",
            "integration/names/test_name_rules.py::test_i9_table_of_rules",
        ),
    ),
    Mutant(
        name="any-ttl",
        without="an annotation may ask for any TTL",
        invariants="I9",
        file="domain/dns/annotations/reading.py",
        old="        if ttl is None or not MIN_TTL_SECONDS <= ttl <= max_ttl:\n",
        new="        if ttl is None or not MIN_TTL_SECONDS <= ttl <= MAX_TTL_SECONDS:\n",
        caught_by=(
            "unit/domain/dns/test_dns_cases.py::test_row_of_the_contract",
            "integration/names/test_name_rules.py::test_i9_annotations_ask_for_no_longer_ttl_than_the_cluster_allows",
        ),
    ),
)
