import pytest
from hypothesis import given, strategies as st

from kubesync.aws.route53.wire import canonical_values, from_route53, to_route53


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("web.example.com", "web.example.com."),
        ("*.example.com", "\\052.example.com."),
        ("_sip._tcp.example.com", "_sip._tcp.example.com."),
        ("a@b.example.com", "a\\100b.example.com."),
        ("a/b.example.com", "a\\057b.example.com."),
        ("a\\056b.example.com", "a\\056b.example.com."),
        ("f\\374bar.example.com", "f\\374bar.example.com."),
    ],
)
def test_name_goes_both_ways(ours: str, theirs: str) -> None:
    assert to_route53(ours) == theirs
    assert from_route53(theirs) == ours


@pytest.mark.parametrize("written", ["WEB.Example.Com.", "\\167eb.example.com", "\\127eb.example.com."])
def test_name_is_unescaped_and_in_lower_case(written: str) -> None:
    assert from_route53(written) == "web.example.com"


@given(
    st.lists(
        st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=".\\"), min_size=1), min_size=1
    )
)
def test_every_printable_name_survives_the_way_there_and_back(labels: list[str]) -> None:
    name = ".".join(labels).lower()
    assert from_route53(to_route53(name)) == name


@pytest.mark.parametrize(
    ("record_type", "written", "canonical"),
    [
        ("A", ["10.0.0.10", "10.0.0.9"], ("10.0.0.9", "10.0.0.10")),
        ("AAAA", ["2001:0DB8:0:0:0:0:0:0001"], ("2001:db8::1",)),
        ("CNAME", ["Target.Example.ORG"], ("target.example.org.",)),
        ("SRV", ["0  100 080 Web.example.com"], ("0 100 80 web.example.com.",)),
        ("MX", ["10 mail.example.com", "10 Mail.Example.com."], ("10 mail.example.com.",)),
        ("TXT", ['"Keep Me"'], ('"Keep Me"',)),
        ("A", ["no address"], ("no address",)),
    ],
)
def test_values_are_canonical(record_type: str, written: list[str], canonical: tuple[str, ...]) -> None:
    assert canonical_values(record_type, written) == canonical
