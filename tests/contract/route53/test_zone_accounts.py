"""Hosted zones in other accounts: whose credentials a request carries, when they are renewed, and what each account is asked."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

import boto3
import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.fakes.route53 import a_change
from harness.fakes.sts import OWN_ACCOUNT, StsStandIn
from harness.secrets_watch import AWS_SECRET, leak_in
from kubesync.aws.dynamodb.store import CONTROL, Key, Put
from kubesync.aws.route53.accounts import RoutedZoneClient, ZoneAccounts
from kubesync.aws.route53.rate import Buckets, TokenBucket
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.domain.errors import UsageError, ZoneThrottledError, ZoneUnavailableError
from kubesync_local.registration.roles import parse_zone_access
from kubesync_local.standins.route53 import StrictRoute53
from kubesync_local.workplace.registry import ZoneRoles

ELSEWHERE = ZoneAccess("arn:aws:iam::222222222222:role/dns/zones", "kubesync-1")
SAME_ACCOUNT = ZoneAccess("arn:aws:iam::222222222222:role/others")
OURS = ZoneAccess(f"arn:aws:iam::{OWN_ACCOUNT}:role/dns")


@dataclass
class Accounts:
    """Zones of two accounts, and the way to each."""

    r53: StrictRoute53
    sts: StsStandIn
    clock: ManualClock
    own_zone: str
    foreign_zone: str
    made: list[Buckets] = field(default_factory=list)
    ways: dict[str, ZoneAccess | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        session = boto3.Session(aws_access_key_id="AKIATEST", aws_secret_access_key=AWS_SECRET, region_name="eu-west-1")
        self.accounts = ZoneAccounts(session, self.clock, self._buckets, "kubesync-test")
        self.client = RoutedZoneClient(self.accounts, self.ways.get, self.clock)

    def _buckets(self) -> Buckets:
        self.made.append(Buckets(TokenBucket(1, 5, self.clock), TokenBucket(100, 100, self.clock)))
        return self.made[-1]

    def signed_by(self) -> list[str]:
        """Key ids of the requests to Route 53 so far."""
        return [call.access_key for call in self.r53.calls]


@pytest.fixture
def setup(r53: StrictRoute53, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Accounts]:
    roles = {ELSEWHERE.role: "kubesync-1", SAME_ACCOUNT.role: "", OURS.role: ""}
    with StsStandIn(clock, roles) as sts:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_ROUTE_53", r53.url)
        made = Accounts(r53, sts, clock, r53.create_zone("example.com"), r53.create_zone("example.net"))
        r53.move_to_account(made.foreign_zone, "222222222222")
        made.ways[made.foreign_zone] = ELSEWHERE
        yield made


def test_each_zone_is_reached_with_its_own_credentials(setup: Accounts) -> None:
    assert setup.client.zone(setup.own_zone).name == "example.com"
    assert setup.client.zone(setup.foreign_zone).name == "example.net"
    setup.client.change(setup.foreign_zone, [a_change("CREATE", setup.foreign_zone, "a.example.net", "A", "192.0.2.1")])
    assert [key.name for key, _ in setup.client.walk(setup.foreign_zone) if key.type == "A"] == ["a.example.net"]
    assert len(setup.client.read(setup.foreign_zone, "a.example.net")) == 1
    assert setup.signed_by() == ["AKIATEST", *["ASIA-222222222222-1"] * 4]
    assert setup.sts.asked == [ELSEWHERE.role]


def test_zone_of_another_account_is_out_of_reach_without_its_role(setup: Accounts) -> None:
    setup.ways.clear()
    with pytest.raises(ZoneUnavailableError, match="AccessDenied"):
        setup.client.zone(setup.foreign_zone)
    # The refusal makes it ask for the way again: it has been registered meanwhile.
    setup.ways[setup.foreign_zone] = ELSEWHERE
    assert setup.client.zone(setup.foreign_zone).name == "example.net"


def test_walk_that_is_refused_makes_it_ask_for_the_way_again(setup: Accounts) -> None:
    setup.ways.clear()
    with pytest.raises(ZoneUnavailableError, match="AccessDenied"):
        list(setup.client.walk(setup.foreign_zone))
    setup.ways[setup.foreign_zone] = ELSEWHERE
    assert [key.type for key, _ in setup.client.walk(setup.foreign_zone)] == ["NS", "SOA"]


def test_way_to_a_zone_is_asked_once_a_minute(setup: Accounts) -> None:
    asked: list[str] = []

    def access_of(zone_id: str) -> ZoneAccess | None:
        asked.append(zone_id)
        return setup.ways.get(zone_id)

    client = RoutedZoneClient(setup.accounts, access_of, setup.clock)
    for _ in range(3):
        client.zone(setup.own_zone)
    assert asked == [setup.own_zone]
    setup.clock.advance(61)
    client.zone(setup.own_zone)
    assert asked == [setup.own_zone] * 2


def test_credentials_are_renewed_before_they_expire(setup: Accounts) -> None:
    setup.client.zone(setup.foreign_zone)
    setup.clock.advance(3290)
    setup.client.zone(setup.foreign_zone)
    assert len(setup.sts.asked) == 1
    setup.clock.advance(20)
    setup.client.zone(setup.foreign_zone)
    assert setup.signed_by()[-1] == "ASIA-222222222222-2"


def test_known_credentials_are_used_while_new_ones_cannot_be_had(setup: Accounts) -> None:
    setup.client.zone(setup.foreign_zone)
    setup.sts.roles.clear()
    setup.clock.advance(3310)
    for _ in range(3):
        setup.client.zone(setup.foreign_zone)
    assert len(setup.sts.asked) == 2  # asked again only after a while
    setup.clock.advance(300)
    with pytest.raises(ZoneUnavailableError, match="cannot be assumed"):
        setup.client.zone(setup.foreign_zone)


@pytest.mark.parametrize("access", [ZoneAccess(ELSEWHERE.role), ZoneAccess(ELSEWHERE.role, "wrong")])
def test_refused_role_is_named_and_nothing_is_sent(setup: Accounts, access: ZoneAccess) -> None:
    setup.ways[setup.foreign_zone] = access
    with pytest.raises(ZoneUnavailableError, match=r"role/dns/zones cannot be assumed \(AccessDenied\)") as refused:
        setup.client.change(
            setup.foreign_zone, [a_change("CREATE", setup.foreign_zone, "a.example.net", "A", "192.0.2.1")]
        )
    assert setup.r53.calls == []
    assert leak_in(str(refused.value)) == ""


def test_sts_that_is_not_there_is_tried_again_later(setup: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9")
    with pytest.raises(ZoneThrottledError, match="STS cannot be reached"):
        setup.client.change(setup.foreign_zone, [])


def test_every_account_has_buckets_of_its_own(setup: Accounts) -> None:
    setup.ways["Z3"] = SAME_ACCOUNT
    for _ in range(5):
        setup.client.zone(setup.foreign_zone)
    assert setup.clock.slept == []
    setup.client.zone(setup.own_zone)  # another account's requests leave ours alone
    assert setup.clock.slept == []
    with pytest.raises(ZoneUnavailableError):
        setup.client.zone("Z3")  # another role, the same account: the sixth request of five
    assert setup.clock.slept == [pytest.approx(1.0)]


def test_role_in_our_own_account_counts_against_our_own_limits(setup: Accounts) -> None:
    setup.ways[setup.own_zone] = OURS
    for _ in range(5):
        setup.client.zone(setup.own_zone)
    setup.ways.clear()
    setup.clock.advance(61)
    for _ in range(6):
        setup.client.zone(setup.own_zone)
    assert setup.signed_by() == ["ASIA-111111111111-1"] * 5 + ["AKIATEST"] * 6
    assert setup.clock.slept == [pytest.approx(1.0)]


def test_nothing_about_credentials_is_logged(setup: Accounts, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        setup.client.zone(setup.foreign_zone)
    assert leak_in(caplog.text) == ""


def test_way_to_a_zone_is_kept_until_another_is_registered() -> None:
    store = MemoryStore(clock=ManualClock())
    table = ZoneRoles(store)
    assert table.read("Z1") is None
    table.put("Z1", ELSEWHERE)
    table.put("Z2", SAME_ACCOUNT)
    assert (table.read("Z1"), table.read("Z2")) == (ELSEWHERE, SAME_ACCOUNT)
    table.put("Z1", None)
    assert table.read("Z1") is None
    store.write(Put(Key(CONTROL, "zones", "Z1"), {"v": 1, "role": ELSEWHERE.role, "external_id": "x1"}))
    assert table.read("Z1") == ZoneAccess(ELSEWHERE.role, "x1")


@pytest.mark.parametrize(
    ("text", "access"),
    [
        ("arn:aws:iam::222222222222:role/dns", ZoneAccess("arn:aws:iam::222222222222:role/dns")),
        (
            "arn:aws-cn:iam::222222222222:role/a/b,c@d#x:/1",
            ZoneAccess("arn:aws-cn:iam::222222222222:role/a/b,c@d", "x:/1"),
        ),
    ],
)
def test_role_is_read_as_it_is_written(text: str, access: ZoneAccess) -> None:
    assert parse_zone_access(text) == access
    assert (str(access), access.account) == (text, "222222222222")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is not a role"),
        ("dns", "'dns' is not a role"),
        ("arn:aws:iam::222:role/dns", "is not a role"),
        ("arn:aws:iam::222222222222:user/dns", "is not a role"),
        ("arn:aws:iam::222222222222:role/", "is not a role"),
        ("arn:aws:iam::222222222222:role/dns#", "'' is not an external id"),
        ("arn:aws:iam::222222222222:role/dns#a b", "'a b' is not an external id"),
    ],
)
def test_what_is_no_role_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_zone_access(text)
    assert said in str(refused.value)
