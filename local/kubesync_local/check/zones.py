"""Tests each hosted zone of a cluster: it can be reached with its role, has the registered name, and its journal is ours."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from kubesync.aws.dynamodb.store import Store
from kubesync.aws.route53.accounts import ZoneAccounts
from kubesync.aws.route53.journal import Journal, journal_record_key, read_journal
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.lease import EPOCH
from kubesync.aws.tables.control.zone_access import ZoneAccess, ZoneAccessTable
from kubesync.domain.dns.names import zones_of
from kubesync.domain.errors import ZoneError, ZoneThrottledError
from kubesync.settings import Settings
from kubesync_local.check.step import Result, Step, passed
from kubesync_local.registration.clusters import name_form, why_outside
from kubesync_local.registration.name_rules import how_to_limit, rules_in_words
from kubesync_local.workplace.readings import ZoneReadings


@dataclass(frozen=True, slots=True)
class ZoneCheck:
    """Of one cluster's zones."""

    config: ClusterConfig
    store: Store
    accounts: ZoneAccounts
    settings: Settings

    def run(self) -> Iterator[Step]:
        """A step for each zone, and one for all."""
        for reference in self.config.zones:
            name = f"zone {reference.name}"
            access = ZoneAccessTable(self.store).read(reference.id)
            try:
                yield self._zone(name, reference, access)
            except ZoneError as error:
                yield _failed(name, str(error), _advice(error, access))
        outside = why_outside(self.config)
        if outside is not None:
            yield _failed("names", outside, "register a zone of the domain, or another domain")
        else:
            yield passed("names", f"Services of {self.config.domain} fit the zones")
        asked, details = "names asked for", f"Services may ask for: {rules_in_words(self.config)}"
        if self.config.domain_filter:
            yield passed(asked, details)
        else:
            yield Step(asked, Result.OK, details, advice=how_to_limit(self.config))

    def _zone(self, name: str, reference: ZoneReference, access: ZoneAccess | None) -> Step:
        client = self.accounts.client(access)
        zone = client.zone(reference.id)
        if zone.name != reference.name or zone.private != reference.private:
            found = f"{zone.name}{' (private)' if zone.private else ''}"
            return _failed(
                name,
                f"it is {found} now",
                f"give its zones again: `kubesync cluster set {self.config.name} --zone ...`",
            )
        journal = read_journal(client, journal_record_key(zone, self.settings.deployment, self.settings.shard))
        step = self._journal(name, journal)
        if step is not None:
            return step
        known = ZoneReadings(self.store, self.settings.shard, "").read(reference.id)
        if known:
            return _failed(name, f"the last session reports: {known}", "see docs/runbook.md")
        by = "" if access is None else f" by {access.role}"
        ours = "no journal yet" if journal is None else "its journal is ours"
        fits = zones_of(name_form(self.config).example(), (each.zone for each in self.config.zones))
        takes = "Services' names" if zone in fits else "host names from annotations only"
        return passed(name, f"{reference.id} read{by}, {ours}; takes {takes}")

    def _journal(self, name: str, journal: Journal | None) -> Step | None:
        """What is wrong with it, or None."""
        if journal is None:
            return None
        if journal.owner != self.settings.deployment:
            advice = "give this deployment another KUBESYNC_DEPLOYMENT"
            if not journal.owner:
                details = (
                    f"{journal.label} already exists and was not created by kubesync: no journal can be made there"
                )
                return _failed(name, details, f"remove it, or {advice}")
            return _failed(name, f"its journal belongs to {journal.owner}", advice)
        drawn = self.store.get(EPOCH)
        epoch = cast(int, drawn["value"]) if drawn else 0
        if journal.epoch > epoch:
            return _failed(
                name,
                f"its journal has epoch {journal.epoch}, our tables have {epoch}: they may have been lost or restored",
                "see `kubesync recover`",
            )
        return None


def _advice(error: ZoneError, access: ZoneAccess | None) -> str:
    if isinstance(error, ZoneThrottledError):
        # Also the error of a read without a complete answer: the rights are not the cause.
        return "check the network on the way to Route 53, and AWS_ENDPOINT_URL_ROUTE_53 if it is set; then try again"
    needed = "route53:GetHostedZone and route53:ListResourceRecordSets"
    if access is None:
        return f"allow the caller {needed} on it; a zone of another account is registered with its role, ID@ROLE_ARN"
    return f"allow the caller sts:AssumeRole on {access.role}, and that role {needed} on the zone"


def _failed(name: str, details: str, advice: str) -> Step:
    return Step(name, Result.FAILED, details, None, advice)
