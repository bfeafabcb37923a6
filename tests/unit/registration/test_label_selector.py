"""Label selectors: what API servers take, and what is refused before one is asked."""

import pytest

from kubesync_local.registration.scopes import why_no_selector


@pytest.mark.parametrize(
    "text",
    [
        "app",
        "!app",
        "! app",
        "app=web",
        "app==web",
        "app = web",
        "app!=web",
        "app=",
        "app=web,tier!=db",
        " app = web , !internal ",
        "app in (web)",
        "app in (web, api)",
        "app notin (web,api),tier",
        "app in (,web)",
        "in in (in)",
        "example.com/name=V-1_2.x",
        "app.kubernetes.io/name=web",
        "a=" + "v" * 63,
        "k" * 63,
    ],
)
def test_selector_is_taken(text: str) -> None:
    assert why_no_selector(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'' is not a requirement"),
        ("app=web,", "'' is not a requirement"),
        (",app", "',app' is not a requirement"),
        ("app=web;tier=db", "'app=web;tier=db' is not a requirement"),
        ("app in ()", "'app' has no values"),
        ("app notin ( )", "'app' has no values"),
        ("=web", "'=web' is not a requirement"),
        ("app=web=api", "'app=web=api' is not a requirement"),
        ("app in web", "'app in web' is not a requirement"),
        ("app in (web", "'app in (web' is not a requirement"),
        ("app in(web) x", "'app in(web) x' is not a requirement"),
        ("app IN (web)", "'app IN (web)' is not a requirement"),
        ("app notin web,api", "'app notin web,api' is not a requirement"),
        ("size>3", "'size>3' is not a requirement"),
        ("app web", "'app web' is not a requirement"),
        ("!app=web", "'!app=web' is not a requirement"),
        ("-app=web", "'-app' is not a label key"),
        ("Example.com/a=b", "'Example.com/a' is not a label key"),
        ("a/b/c=d", "'a/b/c' is not a label key"),
        ("k" * 64, f"'{'k' * 64}' is not a label key"),
        ("d" * 254 + "/a", "is not a label key"),
        ("app=-web", "'-web' is not a label value"),
        ("app in (web,ä)", "'ä' is not a label value"),
        ("app in (web api)", "'web api' is not a label value"),
        ("a=" + "v" * 64, "is not a label value"),
        ("a" + ",a" * 2_000, "longer than 4000 characters"),
        ("kubernetes.io/service-name=web", "'kubernetes.io/service-name' is set by controllers, not on Services"),
        ("!service.kubernetes.io/headless", "is set by controllers, not on Services"),
    ],
)
def test_what_is_no_selector_is_said_in_words(text: str, why: str) -> None:
    found = why_no_selector(text)
    assert found is not None
    assert why in found
    assert "\n" not in found
