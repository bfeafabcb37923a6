"""Which templates make two Services share a name, and which clusters' names overlap."""

import pytest
from hypothesis import given, settings, strategies as st

from kubesync_local.registration.templates import NameForm, shared_name, why_ambiguous


def a_form(
    template: str = "{service}.{namespace}.svc.{domain}", domain: str = "a.test", namespace: str = ""
) -> NameForm:
    return NameForm(template, domain, "prod", namespace)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{service}.{namespace}.svc.{domain}", ""),
        ("x-{service}-y.{namespace}.{domain}", ""),
        ("{service}-{namespace}.{namespace}.{domain}", ""),
        ("{service}.{service}-{namespace}.{domain}", ""),
        ("{service}-{namespace}.{domain}", "joins {service} and {namespace} without a dot between them"),
        ("{service}{namespace}.{domain}", "joins {service} and {namespace} without a dot between them"),
        ("{service}.{domain}", "lacks {namespace}"),
        ("{namespace}.{domain}", "lacks {service}"),
        ("{service}.{namespace}.example.com", "lacks {domain}"),
        ("web.{cluster}.test", "lacks {service} and {namespace} and {domain}"),
    ],
)
def test_ambiguous_template_says_why(template: str, why: str) -> None:
    assert why_ambiguous(a_form(template)) == why


def test_namespace_may_be_left_out_where_there_is_only_one() -> None:
    assert why_ambiguous(a_form("{service}.{domain}", namespace="shop")) == ""
    assert why_ambiguous(a_form("{service}-{namespace}.{domain}", namespace="shop")) == ""


labels = st.text("ab-", min_size=1, max_size=3)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["{service}.{namespace}", "x{service}.{namespace}-y", "{service}-{namespace}.{service}"]),
    *[labels] * 4,
)
def test_template_that_passes_gives_every_service_a_name_of_its_own(
    template: str, service: str, namespace: str, other_service: str, other_namespace: str
) -> None:
    form = a_form(template + ".{domain}")
    assert why_ambiguous(form) == ""
    same = (service, namespace) == (other_service, other_namespace)
    assert (form.example(service, namespace) == form.example(other_service, other_namespace)) == same


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        (a_form(), a_form(), "a.a.svc.a.test"),
        (a_form(), a_form(domain="b.test"), None),
        (a_form(), a_form(namespace="shop"), "a.shop.svc.a.test"),
        (a_form(namespace="docs"), a_form(namespace="shop"), None),
        (a_form("{service}.{namespace}.{domain}", "svc.a.test"), a_form(), "a.a.svc.a.test"),
        (a_form("{service}-eu.{namespace}.{domain}"), a_form("{service}.{namespace}.{domain}"), "a-eu.a.a.test"),
        (a_form("eu-{service}.{namespace}.{domain}"), a_form("{service}-us.{namespace}.{domain}"), "eu-us.a.a.test"),
        (a_form("a{service}.{namespace}.{domain}"), a_form("b{service}.{namespace}.{domain}"), None),
        (a_form("x_{service}.{namespace}.{domain}"), a_form("{service}.{namespace}.{domain}"), None),
        (a_form("{service}.{namespace}.{domain}"), a_form("{service}.{namespace}.svc.{domain}"), None),
    ],
)
def test_shared_name_is_an_example_or_nothing(one: NameForm, other: NameForm, name: str | None) -> None:
    assert shared_name(one, other) == name
    assert (shared_name(other, one) is None) == (name is None)


@settings(deadline=None, max_examples=60)
@given(*[st.tuples(st.sampled_from(["", "a", "ab-"]), st.sampled_from(["", "b", "-a"]))] * 2, *[labels] * 4)
def test_clusters_that_share_no_name_make_no_two_alike(
    one: tuple[str, str], other: tuple[str, str], s1: str, n1: str, s2: str, n2: str
) -> None:
    forms = [a_form(f"{before}{{service}}{after}.{{namespace}}.{{domain}}") for before, after in (one, other)]
    if forms[0].example(s1, n1) == forms[1].example(s2, n2):
        assert shared_name(*forms) is not None
