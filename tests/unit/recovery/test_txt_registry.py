"""external-dns' TXT registry, as external-dns writes it: names after its options, values, and what says nothing."""

import base64

import pytest

from kubesync.domain.dns.records import AliasTarget, RecordKey, RecordSet
from kubesync_local.recovery.txt_registry import Affixes, Registry, read_registry

ALIAS = RecordSet(None, (), AliasTarget("Z32O12XQLNTSW2", "lb.elb.eu-west-1.amazonaws.com", evaluate_health=True))


def a_set(*values: str) -> RecordSet:
    return RecordSet(300, values)


def a_txt(resource: str = "service/shop/web", owner: str = "default") -> RecordSet:
    return a_set(f'"heritage=external-dns,external-dns/owner={owner},external-dns/resource={resource}"')


def key(label: str) -> RecordKey:
    name, _, rest = label.partition(" ")
    kind, _, identifier = rest.partition(" ")
    return RecordKey("Z1", name, kind, identifier.strip("[]"))


def registry_of(sets: dict[str, RecordSet], affixes: Affixes | None = None, owner: str = "") -> Registry:
    return read_registry({key(label): found for label, found in sets.items()}, affixes or Affixes(), owner)


@pytest.mark.parametrize(
    ("label", "record_set", "txt", "affixes"),
    [
        # the new format
        ("www.example.com A", a_set("192.0.2.1"), "a-www.example.com", Affixes()),
        ("www.example.com AAAA", a_set("2001:db8::1"), "aaaa-www.example.com", Affixes()),
        ("www.example.com CNAME", a_set("x.example.org."), "cname-www.example.com", Affixes()),
        ("_http._tcp.www.example.com SRV", a_set("0 50 80 x."), "srv-_http._tcp.www.example.com", Affixes()),
        ("www.example.com A", a_set("192.0.2.1"), "reg.a-www.example.com", Affixes(prefix="reg.")),
        ("www.example.com A", a_set("192.0.2.1"), "a-www-reg.example.com", Affixes(suffix="-reg")),
        ("www.example.com A", a_set("192.0.2.1"), "a-abc-.www.example.com", Affixes(prefix="%{record_type}-abc-.")),
        (
            "example.com CNAME",
            a_set("x.example.org."),
            "cname-abc-.example.com",
            Affixes(prefix="%{record_type}-abc-."),
        ),
        ("www.example.com CNAME", a_set("x."), "www-.cname.example.com", Affixes(suffix="-.%{record_type}")),
        ("www.example.com A", a_set("192.0.2.1"), "www-a.example.com", Affixes(suffix="-%{record_type}")),
        ("*.example.com A", a_set("192.0.2.1"), "txt-a-wild.example.com", Affixes(prefix="txt-", wildcard="Wild")),
        ("*.example.com A", a_set("192.0.2.1"), "a-*.example.com", Affixes()),
        ("www.example.com A", a_set("192.0.2.1"), "reg-a-www.example.com", Affixes(prefix="REG-")),
        # aliases: since 0.18, and before
        ("www.example.com A", ALIAS, "a-www.example.com", Affixes()),
        ("www.example.com A", ALIAS, "cname-www.example.com", Affixes()),
        ("www.example.com AAAA", ALIAS, "cname-www.example.com", Affixes()),
        # the old format
        ("www.example.com A", a_set("192.0.2.1"), "www.example.com", Affixes()),
        ("www.example.com CNAME", a_set("x.example.org."), "reg.www.example.com", Affixes(prefix="reg.")),
        ("www.example.com A", a_set("192.0.2.1"), "-abc-.www.example.com", Affixes(prefix="%{record_type}-abc-.")),
        ("*.example.com A", a_set("192.0.2.1"), "any.example.com", Affixes(wildcard="any")),
        ("www.example.com AAAA", ALIAS, "www.example.com", Affixes()),
        # shared names
        ("www.example.com A [prod]", a_set("192.0.2.1"), "a-www.example.com TXT [prod]", Affixes()),
    ],
)
def test_set_is_found_by_its_txt_name(label: str, record_set: RecordSet, txt: str, affixes: Affixes) -> None:
    txt = txt if "TXT" in txt else f"{txt} TXT"
    registry = registry_of({label: record_set, txt: a_txt()}, affixes)
    assert registry.of_set[key(label)].resource == "service/shop/web"
    assert registry.of_set[key(label)].owner == "default"
    assert registry.covered == {key(txt): [key(label)]}


@pytest.mark.parametrize(
    ("label", "txt"),
    [
        ("www.example.com A", "aaaa-www.example.com TXT"),
        ("www.example.com AAAA", "www.example.com TXT"),  # the old format does not know AAAA
        ("www.example.com A [prod]", "a-www.example.com TXT"),
        ("www.example.com A", "reg.a-www.example.com TXT"),  # --txt-prefix was not given
        ("www.example.com CNAME", "a-www.example.com TXT"),
    ],
)
def test_txt_record_of_another_set_says_nothing(label: str, txt: str) -> None:
    registry = registry_of({label: a_set("192.0.2.1"), txt: a_txt()})
    assert (registry.of_set, list(registry.entries), dict(registry.covered)) == ({}, [key(txt)], {})


def test_entry_in_the_new_format_counts_before_one_in_the_old() -> None:
    registry = registry_of(
        {
            "www.example.com A": a_set("192.0.2.1"),
            "a-www.example.com A": a_set("192.0.2.2"),
            "a-www.example.com TXT": a_txt("service/shop/web"),
            "a-a-www.example.com TXT": a_txt("service/shop/other"),
        }
    )
    assert {each.name: entry.resource for each, entry in registry.of_set.items()} == {
        "www.example.com": "service/shop/web",
        "a-www.example.com": "service/shop/other",
    }


def test_txt_record_that_may_be_of_two_sets_covers_both() -> None:
    """external-dns before 0.12 knows only the old format: here it keeps ``a-www``, and another hand ``www``."""
    www, a_www = key("www.example.com A"), key("a-www.example.com A")
    record = key("a-www.example.com TXT")
    registry = read_registry({www: a_set("192.0.2.1"), a_www: a_set("192.0.2.2"), record: a_txt()}, Affixes())
    assert (registry.covered[record], set(registry.of_set)) == ([www, a_www], {www, a_www})


def test_encrypted_registry_is_unreadable_and_says_nothing() -> None:
    encrypted = base64.b64encode(bytes(range(120))).decode()
    registry = registry_of({"www.example.com A": a_set("192.0.2.1"), "a-www.example.com TXT": a_set(f'"{encrypted}"')})
    assert (registry.unreadable, registry.of_set, registry.entries) == ([key("a-www.example.com TXT")], {}, {})


@pytest.mark.parametrize(
    "value",
    [
        '"v=spf1 -all"',
        '"heritage=kubesync,owner=test,epoch=3,batch=0123456789abcdef"',
        '"heritage=mate,external-dns/owner=default"',
        '"6AwE8pyZ5uAWQ2hpFtKcZ0yWTyfF0h4xJY7S7bTnH8M="',  # a token of 32 bytes, as mail services want one
        '"v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC"',
        '""',
    ],
)
def test_txt_record_of_somebody_else_is_no_registry(value: str) -> None:
    registry = registry_of({"www.example.com A": a_set("192.0.2.1"), "www.example.com TXT": a_set(value)})
    assert (registry.entries, registry.unreadable, registry.of_set) == ({}, [], {})


def test_entries_of_another_owner_are_left_out_if_one_is_asked_for() -> None:
    sets = {
        "one.example.com A": a_set("192.0.2.1"), "a-one.example.com TXT": a_txt(owner="blue"),
        "two.example.com A": a_set("192.0.2.2"), "a-two.example.com TXT": a_txt(owner="green"),
    }  # fmt: skip
    assert [each.name for each in registry_of(sets).of_set] == ["one.example.com", "two.example.com"]
    assert [each.name for each in registry_of(sets, owner="green").of_set] == ["two.example.com"]


def test_long_value_in_several_strings_is_read_whole() -> None:
    text = f"heritage=external-dns,external-dns/owner=default,external-dns/resource=service/shop/{'w' * 230}"
    value = f'"{text[:255]}" "{text[255:]}"'
    registry = registry_of({"www.example.com A": a_set("192.0.2.1"), "a-www.example.com TXT": a_set(value)})
    assert registry.of_set[key("www.example.com A")].resource == f"service/shop/{'w' * 230}"


def test_entry_beside_other_values_is_not_alone() -> None:
    mixed = RecordSet(300, (*a_txt().values, '"v=spf1 -all"'))
    registry = registry_of({"www.example.com A": a_set("192.0.2.1"), "www.example.com TXT": mixed})
    assert [entry.alone for entry in registry.entries.values()] == [False]
