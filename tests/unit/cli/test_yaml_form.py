"""YAML answers: every parser reads the values back, and no terminal obeys them."""

import pytest
import yaml
from hypothesis import given, strategies as st

from kubesync_local.terminal.escaping import escaped
from kubesync_local.terminal.yaml_form import as_yaml

_TEXT = st.text(st.characters(codec="utf-8"))
_DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(_DOCUMENTS)
def test_values_come_back_and_nothing_is_obeyed(document: object) -> None:
    text = as_yaml(document)

    assert yaml.safe_load(text) == document
    assert escaped(text) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("web.example.com", "web.example.com\n...\n"),
        ("10.0.0.1", '"10.0.0.1"\n'),
        ("1e3", '"1e3"\n'),
        ("0o17", '"0o17"\n'),
        ("no", '"no"\n'),
        ("Y", '"Y"\n'),
        ("\x1b[31mred", '"\\e[31mred"\n'),
        ("a\u202eb", '"a\\u202eb"\n'),
        ("zo\xeb", "zoë\n...\n"),
        ("two\nlines", '"two\\nlines"\n'),
        ({"b": 1, "a": None}, "b: 1\na: null\n"),
        ([{"b": []}] * 2, "- b: []\n- b: []\n"),
    ],
    ids=repr,
)
def test_form_of_a_value(value: object, text: str) -> None:
    assert as_yaml(value) == text


def test_long_text_is_one_line() -> None:
    assert as_yaml({"message": "word " * 200 + "end"}).count("\n") == 1
