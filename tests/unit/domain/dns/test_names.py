"""Names: canonical form, legality, zones, template; addresses."""

import pytest

from kubesync.domain.dns.addresses import parse_address
from kubesync.domain.dns.names import canonical_name, service_name, why_illegal, zones_of
from kubesync.domain.dns.records import Zone

LABEL_63 = "a" * 63
NAME_253 = ".".join([LABEL_63, LABEL_63, LABEL_63, "a" * 61])


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("Web.Example.COM.", "web.example.com"),
        (" web.example.com ", "web.example.com"),
        ("web..", "web."),
        ("\u212aelvin.example.com", "\u212aelvin.example.com"),
    ],
)
def test_canonical_name_folds_ascii_case_and_one_trailing_dot(text: str, canonical: str) -> None:
    assert canonical_name(text) == canonical


@pytest.mark.parametrize(
    "name", ["a", "web.example.com", "_http._tcp.web.example.com", "a--b.c", "1.2", LABEL_63, NAME_253]
)
def test_name_is_legal(name: str) -> None:
    assert why_illegal(name) == ""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the name is empty"),
        ("a..b", "a label is empty"),
        (".a", "a label is empty"),
        ("a" * 64 + ".b", "a label has 64 characters, the limit is 63"),
        (NAME_253 + "a", "the name has 254 characters, the limit is 253"),
        ("a b.c", "label 'a b' is not made of letters, digits, '_' and inner '-'"),
        ("-a.b", "label '-a' is not made of letters, digits, '_' and inner '-'"),
        ("a-.b", "label 'a-' is not made of letters, digits, '_' and inner '-'"),
        ("bücher.example.com", "label 'bücher' is not made of letters, digits, '_' and inner '-'"),
        ("*.example.com", "label '*' is not made of letters, digits, '_' and inner '-'"),
        ("a\n", "label 'a\\n' is not made of letters, digits, '_' and inner '-'"),
    ],
)
def test_name_is_illegal(name: str, reason: str) -> None:
    assert why_illegal(name) == reason


def test_wildcard_is_legal_only_as_whole_first_label() -> None:
    illegal = {name: bool(why_illegal(name, wildcard=True)) for name in ("*.a.b", "a.*.b", "x*.a", "*.*.a", "*")}

    assert illegal == {"*.a.b": False, "a.*.b": True, "x*.a": True, "*.*.a": True, "*": True}


def test_zones_of_name_are_all_with_longest_suffix() -> None:
    public = Zone("Z1", "example.com")
    private = Zone("Z2", "example.com", private=True)
    deeper = Zone("Z3", "prod.example.com")
    zones = (deeper, private, public)

    assert zones_of("web.example.com", zones) == (public, private)
    assert zones_of("web.prod.example.com", zones) == (deeper,)
    assert zones_of("prod.example.com", zones) == (deeper,)
    assert zones_of("example.com", zones) == (public, private)
    assert zones_of("evilexample.com", zones) == ()
    assert zones_of("com", zones) == ()


def test_service_name_fills_template_once() -> None:
    parts = {"service": "web", "namespace": "shop", "domain": "Prod.Example.com.", "cluster": "prod"}

    assert service_name("{service}.{namespace}.svc.{domain}", **parts) == "web.shop.svc.prod.example.com"
    assert service_name("{service}-{namespace}-{cluster}.{domain}.", **parts) == "web-shop-prod.prod.example.com"
    assert service_name("{service.__class__}.{domain}", **parts) == "{service.__class__}.prod.example.com"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:DB8:0:0::10", "2001:db8::10"),
        ("fd00:10:68:0:0:0:5:f234", "fd00:10:68::5:f234"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::5:f234", "::5:f234"),
    ],
)
def test_address_has_one_text(text: str, canonical: str) -> None:
    address = parse_address(text)

    assert address is not None
    assert address.text == canonical


@pytest.mark.parametrize("text", ["", "None", "10.0.0", "10.0.0.01", "10.0.0.256", "fe80::1%eth0", "10.0.0.1 ", "web"])
def test_address_is_refused(text: str) -> None:
    assert parse_address(text) is None
