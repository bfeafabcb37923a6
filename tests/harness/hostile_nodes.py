"""Nodes as somebody might write them who wants to write configuration."""

from typing import Any, Final

from hypothesis import strategies as st

_BREAKS: Final = (
    "10.0.0.1; } server { listen 1; }",
    "10.0.0.1\nserver evil 192.0.2.66:80",
    "10.0.0.1#",
    "10.0.0.1 down",
    '10.0.0.1"',
    "10.0.0.1'",
    "::1%eth0; evil",
    "::1]:80; server 192.0.2.66",
    "fe80::1%{evil}",
    "$host",
    "unix:/tmp/evil.sock",
    "evil.example.com",
    "٣.0.0.1",
    "10.0.0.1\u2028",
    "010.0.0.1",
    "",
)
_addresses = st.one_of(
    st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str), st.sampled_from(_BREAKS), st.text(max_size=20)
)
_texts = st.one_of(
    st.sampled_from(("a", "b", "eu-west-1a", "x;}\n", 'x"', "# y", "\x00", "ж", "{}")), st.text(max_size=10)
)
_values: Any = st.one_of(st.integers(-5, 70_000), st.booleans(), _texts, st.none())


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, Any]:
    """One node: mostly valid, with texts that break out of a configuration where a proxy would trust them."""
    node: dict[str, Any] = {
        "ip": draw(_addresses),
        "port": draw(st.one_of(st.integers(1, 65_535), st.integers(1, 65_535), _values)),
        "ready": draw(st.one_of(st.booleans(), st.booleans(), _values)),
    }
    optional: Any = st.fixed_dictionaries(
        {},
        optional={
            "serving": st.one_of(st.booleans(), _values),
            "terminating": st.one_of(st.booleans(), _values),
            "weight": st.one_of(st.integers(2, 100_000), _values),
            "backup": st.one_of(st.booleans(), _values),
            "zone": _texts,
            "pod": _texts,
            "node": _texts,
            "hostname": _texts,
            "comment": _texts,
        },
    )
    more: dict[str, Any] = draw(optional)
    return node | more


def node_lists() -> st.SearchStrategy[list[dict[str, Any]]]:
    """The nodes of an upstream, any order, repeats included."""
    return st.lists(nodes(), max_size=12)
