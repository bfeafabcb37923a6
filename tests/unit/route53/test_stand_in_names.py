import pytest

from kubesync_local.standins.route53.zone.names import NameRefusedError, lets_change, lies_in, listing_form, sort_key


@pytest.mark.parametrize(
    ("written", "listed"),
    [
        ("Web.Example.COM", "web.example.com."),
        ("*.example.com.", "\\052.example.com."),
        ("\\127eb.example.com", "web.example.com."),
        ("a\\056b.example.com", "a\\056b.example.com."),
        ("a\\b.example.com", "a\\134b.example.com."),
    ],
)
def test_listing_form(written: str, listed: str) -> None:
    assert listing_form(written) == listed
    assert listing_form(listed) == listed


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("a..example.com", "FATAL problem: DomainLabelEmpty (Domain label is empty) encountered with 'a..example.com'"),
        ("", "FATAL problem: DomainLabelEmpty (Domain label is empty) encountered with ''"),
        ("a" * 64 + ".example.com", "DomainLabelTooLong"),
        (".".join(["a" * 63] * 3 + ["b" * 62]), "DomainNameTooLong"),
        ("a b.example.com", "UnsupportedCharacter"),
        ("ä.example.com", "UnsupportedCharacter"),
    ],
)
def test_name_is_refused(written: str, problem: str) -> None:
    with pytest.raises(NameRefusedError) as refused:
        listing_form(written)
    assert problem in str(refused.value)


def test_longest_name_is_accepted() -> None:
    assert len(listing_form(".".join(["a" * 63] * 3 + ["b" * 61]))) == 254


def test_order_is_by_reversed_labels_with_the_trailing_dot() -> None:
    names = [
        listing_form(name)
        for name in ("example.com", "x.a.example.com", "b.example.com", "a-b.example.com", "a.example.com")
    ]
    assert sorted(names, key=sort_key) == [
        "example.com.",
        "a-b.example.com.",
        "a.example.com.",
        "x.a.example.com.",
        "b.example.com.",
    ]


@pytest.mark.parametrize(
    ("name", "inside"),
    [("example.com.", True), ("a.example.com.", True), ("evilexample.com.", False), ("example.org.", False)],
)
def test_name_lies_in_a_zone_by_whole_labels(name: str, inside: bool) -> None:
    assert lies_in(name, "example.com.") is inside


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*.example.com", "web.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "_http._tcp.web.example.com", True),
        ("*.example.com", "*.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "web.examplexcom", False),
        (r"\052.example.com", "*.example.com", True),
        (r"\052.example.com", "web.example.com", False),
        ("web.example.com", "Web.Example.COM.", True),
        ("web.example.com", "web.example.com.org", False),
        ("Web.example.com", "web.example.com", False),
        ("web?.example.com", "web1.example.com", True),
        ("web?.example.com", "web.example.com", False),
        ("web[1].example.com", "web1.example.com", False),
    ],
)
def test_record_names_as_iam_compares_them(pattern: str, name: str, *, fits: bool) -> None:
    assert lets_change([pattern], [listing_form(name)]) == fits


def test_every_name_of_a_request_has_to_fit_a_pattern() -> None:
    names = ["a.example.com.", "b.example.net."]
    assert lets_change(["*.example.net", "a.*"], names)
    assert not lets_change(["*.example.net"], names)
    assert not lets_change([], names)
