"""What a connection knows of the ends of its credentials, over real TLS. No request is made for it."""

import base64
import datetime as dt
import json
from contextlib import closing
from pathlib import Path

import pytest

from harness.fakes.certificates import Authority, Leaf, make_authority, make_leaf
from harness.wire.scripted_server import Answer, ScriptedServer, answer, status_answer
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.credential_ends import Credential
from kubesync.domain.errors import DeniedError, HandshakeError, KubesyncError
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
from kubesync.kubernetes.transport.credential_ends import CredentialEnds
from kubesync.kubernetes.transport.urls import ApiRequest

CLIENT, CA, SERVER, TOKEN = Credential
REQUEST = ApiRequest("/api/v1/services")
POLICY = ReflectorPolicy(connect_timeout=60.0, read_timeout=60.0)
FINE = answer({"kind": "ServiceList"})

BEGINS = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
IN_2030, IN_2035, IN_2040, IN_2050 = 1893456000.0, 2064816550.0, 2209086245.0, 2524608000.0
DATES = {
    IN_2030: dt.datetime(2030, 1, 1, tzinfo=dt.UTC),
    IN_2035: dt.datetime(2035, 6, 7, 8, 9, 10, tzinfo=dt.UTC),
    IN_2040: dt.datetime(2040, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    IN_2050: dt.datetime(2050, 1, 1, tzinfo=dt.UTC),
}
IN_2021 = 1609459200.0
EARLIER = {IN_2021: dt.datetime(2021, 1, 1, tzinfo=dt.UTC)}


class Clock(ThreadScheduler):
    """The machine's, as TLS goes by it, that can be put forward."""

    ahead = 0.0

    def epoch_seconds(self) -> float:
        return super().epoch_seconds() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


class Tokens:
    """Gives one token after another where a fresh one is asked for."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    def token(self, *, fresh: bool = False) -> str:
        if fresh and len(self.tokens) > 1:
            self.tokens.pop(0)
        return self.tokens[0]


class Certificates:
    def __init__(self, ca: str | None = None, client: str | None = None) -> None:
        self.ca, self.client = ca, client

    def ca_pem(self, *, fresh: bool = False) -> str | None:
        return self.ca

    def client_pem(self, *, fresh: bool = False) -> str | None:
        return self.client


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ends(clock: Clock) -> CredentialEnds:
    return CredentialEnds(clock)


def authority(name: str, end: float) -> Authority:
    return make_authority(name, begins=BEGINS, ends=(DATES | EARLIER)[end])


def leaf(directory: Path, of: Authority, end: float) -> Leaf:
    return make_leaf(directory, of, begins=BEGINS, ends=DATES[end])


def jwt(end: float, lifetime: float | None = None) -> str:
    claims = {"exp": int(end), "sub": "kubesync", **({} if lifetime is None else {"iat": int(end - lifetime)})}
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


def ask(server: ScriptedServer | str, ends: CredentialEnds, clock: Clock, **access: object) -> None:
    url = server if isinstance(server, str) else server.url
    made = ClusterAccess(url, policy=POLICY, **access)  # type: ignore[arg-type]
    with closing(ApiClient(made, clock, ends)) as api:
        api.fetch(REQUEST)


# --- certificates ---


def test_server_client_and_the_ca_that_signed_are_known_after_one_request(
    tmp_path: Path, ends: CredentialEnds, clock: Clock
) -> None:
    ca = authority("kubernetes", IN_2050)
    client = leaf(tmp_path, ca, IN_2030)
    with ScriptedServer([FINE], tls=leaf(tmp_path, ca, IN_2035).server_context(ca)) as server:
        ask(server, ends, clock, ca_pem=ca.pem, client_pem=client.pem)
        assert server.connections == 1
    assert ends.known() == {CLIENT: (IN_2030,), CA: (IN_2050,), SERVER: (IN_2035,), TOKEN: ()}


@pytest.mark.parametrize("signing", [IN_2030, IN_2050])
def test_ca_in_a_bundle_is_the_one_that_signed(
    tmp_path: Path, ends: CredentialEnds, clock: Clock, signing: float
) -> None:
    every = {end: authority(f"of {end}", end) for end in (IN_2021, IN_2030, IN_2050)}
    bundle = "".join(each.pem for each in every.values())
    with ScriptedServer([FINE], tls=leaf(tmp_path, every[signing], IN_2035).server_context()) as server:
        ask(server, ends, clock, ca_pem=bundle)
    assert ends.known()[CA] == (signing,), "others end without harm"


def test_bundle_is_known_before_any_handshake_and_what_has_ended_in_it_does_no_harm(
    tmp_path: Path, ends: CredentialEnds, clock: Clock
) -> None:
    old, new, stranger = authority("old", IN_2021), authority("new", IN_2050), authority("stranger", IN_2040)
    with (
        ScriptedServer([], tls=leaf(tmp_path, stranger, IN_2035).server_context()) as server,
        pytest.raises(HandshakeError),
    ):
        ask(server, ends, clock, ca_pem=old.pem + new.pem)
    assert ends.known() == {CLIENT: (), CA: (IN_2021, IN_2050), TOKEN: ()}, "the server's own is not known"


def test_rotated_bundle_and_client_certificate_are_followed(tmp_path: Path, ends: CredentialEnds, clock: Clock) -> None:
    old, new = authority("old", IN_2035), authority("new", IN_2050)
    source = Certificates(old.pem, leaf(tmp_path, old, IN_2030).pem)
    with ScriptedServer([FINE], tls=leaf(tmp_path, old, IN_2030).server_context(old)) as server:
        ask(server, ends, clock, certificates=source)
    assert ends.known() == {CLIENT: (IN_2030,), CA: (IN_2035,), SERVER: (IN_2030,), TOKEN: ()}
    source.ca, source.client = old.pem + new.pem, leaf(tmp_path, new, IN_2040).pem
    with ScriptedServer([FINE], tls=leaf(tmp_path, new, IN_2040).server_context(new)) as server:
        ask(server, ends, clock, certificates=source)
        # Another API server behind the same address may still show the old one. After an hour it is gone.
        assert ends.known() == {CLIENT: (IN_2040,), CA: (IN_2050,), SERVER: (IN_2030,), TOKEN: ()}
    clock.ahead = 3601.0
    with ScriptedServer([FINE], tls=leaf(tmp_path, new, IN_2040).server_context(new)) as server:
        ask(server, ends, clock, certificates=source)
    assert ends.known()[SERVER] == (IN_2040,)


def test_client_certificate_that_is_replaced_after_a_refusal_is_followed_within_one_connection(
    tmp_path: Path, ends: CredentialEnds, clock: Clock
) -> None:
    ca = authority("kubernetes", IN_2050)
    source = Certificates(ca.pem, leaf(tmp_path, ca, IN_2030).pem)

    class Refused:
        def __call__(self, connection: object) -> None:
            source.client = leaf(tmp_path, ca, IN_2040).pem
            status_answer(401, "Unauthorized", Connection="close")(connection)  # type: ignore[arg-type]

    refused: Answer = Refused()
    with ScriptedServer([refused, FINE], tls=leaf(tmp_path, ca, IN_2035).server_context(ca)) as server:
        ask(server, ends, clock, certificates=source)
    assert ends.known()[CLIENT] == (IN_2040,)


def test_without_verification_neither_ca_nor_server_ends(tmp_path: Path, ends: CredentialEnds, clock: Clock) -> None:
    ca = authority("kubernetes", IN_2050)
    with ScriptedServer([FINE], tls=leaf(tmp_path, ca, IN_2030).server_context()) as server:
        ask(server, ends, clock, ca_pem=ca.pem, insecure_skip_tls_verify=True)
    assert ends.known() == {CLIENT: (), CA: (), SERVER: (), TOKEN: ()}


def test_plain_http_has_nothing_that_ends(ends: CredentialEnds, clock: Clock) -> None:
    with ScriptedServer([FINE]) as server:
        ask(server, ends, clock)
    assert ends.known() == {CLIENT: (), CA: (), SERVER: (), TOKEN: ()}


def test_public_authorities_end_without_a_person(ends: CredentialEnds, clock: Clock) -> None:
    with pytest.raises(KubesyncError):
        ask("https://127.0.0.1:1", ends, clock)
    assert ends.known() == {CLIENT: (), CA: (), TOKEN: ()}


def test_short_lived_certificates_are_renewed_by_somebody(tmp_path: Path, ends: CredentialEnds, clock: Clock) -> None:
    ca = make_authority()  # four days
    source = Certificates(ca.pem, make_leaf(tmp_path, ca).pem)
    with ScriptedServer([FINE], tls=make_leaf(tmp_path, ca).server_context(ca)) as server:
        ask(server, ends, clock, certificates=source)
    assert ends.known() == {CLIENT: (), CA: (), SERVER: (), TOKEN: ()}


def test_short_lived_client_certificate_that_has_ended_is_told(
    tmp_path: Path, ends: CredentialEnds, clock: Clock
) -> None:
    ca = make_authority()
    source = Certificates(ca.pem, make_leaf(tmp_path, ca, begins=BEGINS, ends=BEGINS + dt.timedelta(days=1)).pem)
    with ScriptedServer([FINE], tls=make_leaf(tmp_path, ca).server_context(ca)) as server, pytest.raises(KubesyncError):
        ask(server, ends, clock, certificates=source)
    assert ends.known()[CLIENT] == (1577923200.0,)  # 2020-01-02


# --- tokens ---


def test_token_and_the_one_that_replaces_it(ends: CredentialEnds, clock: Clock) -> None:
    year = 365 * 86_400.0
    source = Tokens(jwt(IN_2030, year), jwt(IN_2035, year), "opaque")
    with ScriptedServer([FINE, status_answer(401, "Unauthorized"), FINE, status_answer(401, ""), FINE]) as server:
        ask(server, ends, clock, token_source=source)
        assert ends.known()[TOKEN] == (IN_2030,)
        ask(server, ends, clock, token_source=source)
        assert ends.known()[TOKEN] == (IN_2035,)
        ask(server, ends, clock, token_source=source)
    assert ends.known()[TOKEN] == ()


def test_long_lived_token_that_has_ended_is_told_at_once(ends: CredentialEnds, clock: Clock) -> None:
    with ScriptedServer([status_answer(401, "Unauthorized")] * 2) as server, pytest.raises(DeniedError):
        ask(server, ends, clock, token_source=Tokens(jwt(IN_2021, 365 * 86_400.0)))
    assert ends.known()[TOKEN] == (IN_2021,)


def test_token_that_the_kubelet_renews_every_hour_never_ends(ends: CredentialEnds, clock: Clock) -> None:
    now = clock.epoch_seconds()
    # The known one has ended, since the file is read every minute only; the fresh one is good.
    source = Tokens(jwt(now + 300, 3600), jwt(now - 10, 3600), jwt(now + 3000, 3600))
    with ScriptedServer([FINE, status_answer(401, ""), status_answer(401, ""), FINE]) as server:
        ask(server, ends, clock, token_source=source)
        assert ends.known()[TOKEN] == ()
        source.tokens.pop(0)
        with pytest.raises(DeniedError):
            # Two refusals: the second was of a token that is good, as far as its date says.
            ask(server, ends, clock, token_source=source)
        assert ends.known()[TOKEN] == ()
        ask(server, ends, clock, token_source=source)
    assert ends.known()[TOKEN] == ()


def test_short_lived_token_that_has_ended_counts_only_if_the_source_gives_it_again(
    ends: CredentialEnds, clock: Clock
) -> None:
    end = float(int(clock.epoch_seconds()) - 10)
    with ScriptedServer([FINE, status_answer(401, ""), status_answer(401, "")]) as server:
        ask(server, ends, clock, token_source=Tokens(jwt(end, 3600)))
        assert TOKEN not in ends.known(), "the source may know a newer one, and nobody has refused this one"
        with pytest.raises(DeniedError):
            ask(server, ends, clock, token_source=Tokens(jwt(end, 3600)))
    assert ends.known()[TOKEN] == (end,)


def test_short_lived_token_that_nobody_renews_any_more_is_told(ends: CredentialEnds, clock: Clock) -> None:
    end = float(int(clock.epoch_seconds()) - 7200)
    with ScriptedServer([status_answer(401, "Unauthorized")] * 2) as server, pytest.raises(DeniedError):
        ask(server, ends, clock, token_source=Tokens(jwt(end, 3600)))
    assert ends.known()[TOKEN] == (end,)


def test_token_that_its_source_renews_is_not_looked_at(ends: CredentialEnds, clock: Clock) -> None:
    with ScriptedServer([FINE]) as server:
        ask(server, ends, clock, token_source=Tokens(jwt(IN_2021, 365 * 86_400.0)), renews_token=True)
    assert ends.known()[TOKEN] == ()


def test_no_secret_is_kept_i8(tmp_path: Path, ends: CredentialEnds, clock: Clock) -> None:
    ca = authority("kubernetes", IN_2050)
    client, token = leaf(tmp_path, ca, IN_2030).pem, jwt(IN_2030, 365 * 86_400.0)
    with ScriptedServer([FINE], tls=leaf(tmp_path, ca, IN_2035).server_context(ca)) as server:
        ask(server, ends, clock, certificates=Certificates(ca.pem, client), token_source=Tokens(token))
    kept = repr(vars(ends))
    assert token not in kept
    assert "PRIVATE KEY" not in kept
