"""The demo's verdict is only worth something if it can be bad."""

from kubesync_local.demo import expected
from kubesync_local.demo.verdict import differences
from kubesync_local.terminal.output import counted

KEY = ("web.shop.svc.demo.example.com", "A")


def test_what_the_story_leads_to_has_no_differences() -> None:
    assert differences(expected.RECORDS, expected.UPSTREAMS, expected.RECORDS, expected.UPSTREAMS) == []


def test_every_kind_of_difference_is_named() -> None:
    records = {**expected.RECORDS, KEY: (60, ("10.68.0.17",)), ("old.example.com", "A"): (30, ("10.0.0.1",))}
    upstreams = {name: nodes for name, nodes in expected.UPSTREAMS.items() if name != "demo/edge/idle/80/TCP"}

    assert differences(records, upstreams, expected.RECORDS, expected.UPSTREAMS) == [
        "surplus    old.example.com A: (30, ('10.0.0.1',))",
        "different  web.shop.svc.demo.example.com A: (60, ('10.68.0.17',)), should be (30, ('10.68.0.17',))",
        "missing    demo/edge/idle/80/TCP: ()",
    ]


def test_one_is_no_plural() -> None:
    assert [counted(n, "problem") for n in (0, 1, 2)] == ["0 problems", "1 problem", "2 problems"]
    assert [counted(n, "key changed") for n in (1, 2)] == ["1 key changed", "2 keys changed"]
