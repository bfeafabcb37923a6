"""All rules of the DNS contract, in the order of ``docs/dns.md``."""

from __future__ import annotations

from typing import Final

from harness.dns_cases.of_addresses import ADDRESSES, NETWORKS
from harness.dns_cases.of_annotations import CLASSES, HOSTNAMES, INTERNAL, TARGETS
from harness.dns_cases.of_changes import CHANGES, REGISTRATION
from harness.dns_cases.of_headless import HEADLESS
from harness.dns_cases.of_routing import ALIASES, CONFLICTS, WEIGHTED
from harness.dns_cases.of_services import CLUSTER_IPS, EXCLUSION, EXTERNAL_NAMES, LOAD_BALANCERS, OPT_IN
from harness.dns_cases.of_ttls import PREFIXES, TTLS
from harness.dns_cases.of_zones import LIMITS, TEMPLATES, ZONES
from harness.dns_cases.table import Rule

RULES: Final[tuple[Rule, ...]] = (
    CLUSTER_IPS,
    LOAD_BALANCERS,
    HEADLESS,
    EXTERNAL_NAMES,
    EXCLUSION,
    OPT_IN,
    HOSTNAMES,
    INTERNAL,
    TARGETS,
    ADDRESSES,
    NETWORKS,
    TTLS,
    PREFIXES,
    CLASSES,
    TEMPLATES,
    ZONES,
    LIMITS,
    ALIASES,
    WEIGHTED,
    CONFLICTS,
    CHANGES,
    REGISTRATION,
)
