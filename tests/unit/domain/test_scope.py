"""Scope: which namespaces are seen, what is asked of the API server, and what is refused."""

import pytest

from kubesync.domain.objects import Resource
from kubesync.domain.sources.scope import Scope
from kubesync_local.registration.scopes import whys_no_scope

SERVICES, SLICES = Resource.SERVICES, Resource.ENDPOINTSLICES


@pytest.mark.parametrize(
    ("scope", "path", "filtered", "services", "slices", "identity"),
    [
        (Scope(), "", False, (), (), True),
        (Scope(("shop",)), "shop", False, (), (), False),
        (Scope(("default",)), "default", False, (), (), True),
        (Scope(("shop", "bill")), "", True, (), (), False),
        (Scope(("shop", "default")), "", True, (), (), True),
        (
            Scope(excluded=("kube-system", "default")),
            *("", False),
            (("fieldSelector", "metadata.namespace!=kube-system,metadata.namespace!=default"),),
            (("fieldSelector", "metadata.namespace!=kube-system,metadata.namespace!=default"),),
            False,
        ),
        (Scope(selector="app=web"), "", False, (("labelSelector", "app=web"),), (), False),
        (
            Scope(("shop",), (), "app", select_endpoints=True),
            *("shop", False),
            (("labelSelector", "app"),),
            (("labelSelector", "app"),),
            False,
        ),
        (
            Scope(excluded=("test",), selector="app"),
            *("", False),
            (("fieldSelector", "metadata.namespace!=test"), ("labelSelector", "app")),
            (("fieldSelector", "metadata.namespace!=test"),),
            False,
        ),
    ],
)
def test_scope_is_asked_for(
    scope: Scope,
    path: str,
    filtered: bool,
    services: tuple[tuple[str, str], ...],
    slices: tuple[tuple[str, str], ...],
    identity: bool,
) -> None:
    assert (scope.namespace, scope.filtered, scope.shows_identity) == (path, filtered, identity)
    assert scope.selectors(SERVICES) == services
    assert scope.selectors(SLICES) == slices


def test_scope_holds_namespaces() -> None:
    names = ("default", "shop", "bill")
    assert [n for n in names if Scope().holds(n)] == ["default", "shop", "bill"]
    assert [n for n in names if Scope(("shop", "bill")).holds(n)] == ["shop", "bill"]
    assert [n for n in names if Scope(excluded=("shop",)).holds(n)] == ["default", "bill"]


@pytest.mark.parametrize(
    ("scope", "why"),
    [
        (Scope(), None),
        (Scope(("a", "b" * 63)), None),
        (Scope(excluded=("kube-system",), selector="app=web", select_endpoints=True), None),
        (Scope(("shop",), ("bill",)), "--namespace and --exclude-namespaces exclude each other"),
        (
            Scope(("shop", "Shop")),
            "--namespace 'Shop' is not a namespace: use lower-case letters, digits and hyphens, at most 63",
        ),
        (
            Scope(excluded=("a,b",)),
            "--exclude-namespaces 'a,b' is not a namespace: use lower-case letters, digits and hyphens, at most 63",
        ),
        (Scope(("b" * 64,)), f"--namespace '{'b' * 64}' is not a namespace: use lower-case letters, digits and hyphens, at most 63"),
        (Scope(tuple(f"n{n}" for n in range(101))), "--namespace names 101 namespaces: at most 100"),
        (Scope(select_endpoints=True), "--select-endpoints goes with --selector"),
        (
            Scope(selector="app=web,"),
            "--selector 'app=web,': '' is not a requirement, for example app=web, tier!=db, app in (a,b), app or !app",
        ),
    ],
)  # fmt: skip
def test_scope_that_cannot_be_meant_is_refused(scope: Scope, why: str | None) -> None:
    assert next(whys_no_scope(scope), None) == why
