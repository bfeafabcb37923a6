"""Lists of kubeconfig files. The expected values are what `kubectl config view` shows for the same files (1.32)."""

import os
from pathlib import Path

import pytest

from harness.fakes.manual_clock import ManualClock
from kubesync.domain.errors import UsageError
from kubesync.kubernetes.transport.client import ClusterAccess
from kubesync_local.workplace.kubeconfig import load_kubeconfig
from kubesync_local.workplace.kubeconfig_files import listed, usual_files

FIRST = """
clusters: [{name: c, cluster: {server: "https://first", certificate-authority: ca.pem}}]
users: [{name: u, user: {token: first}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
"""
SECOND = """
current-context: second
clusters:
- {name: c, cluster: {server: "https://hidden", tls-server-name: hidden}}
- {name: d, cluster: {server: "https://second", certificate-authority: ca.pem}}
users: [{name: u, user: {client-certificate: no.crt, client-key: no.key}}, {name: v, user: {tokenFile: token}}]
contexts:
- {name: x, context: {cluster: d, user: v}}
- {name: second, context: {cluster: d, user: v}}
- {name: mixed, context: {cluster: c, user: v}}
"""


def files(folder: Path) -> tuple[Path, Path]:
    """Two files, each in a folder of its own, with what they name."""
    paths = folder / "one/config", folder / "two/config"
    for path, text in zip(paths, (FIRST, SECOND), strict=True):
        path.parent.mkdir()
        path.write_text(text)
        path.with_name("ca.pem").write_text(f"CA of {path.parent.name}")
        path.with_name("token").write_text(f"token of {path.parent.name}")
    return paths


def load(*paths: Path | str, context: str | None = None) -> ClusterAccess:
    return load_kubeconfig(os.pathsep.join(map(str, paths)), context, ManualClock())


def seen(access: ClusterAccess) -> tuple[str, str | None, str | None]:
    assert access.token_source is not None
    return access.server, access.ca_pem, access.token_source.token()


def test_current_context_is_of_the_first_file_that_sets_it(tmp_path: Path) -> None:
    one, two = files(tmp_path)

    assert seen(load(one, two)) == ("https://second", "CA of two", "token of two")
    one.write_text("current-context: x\n" + FIRST)
    assert seen(load(one, two)) == ("https://first", "CA of one", "first")
    assert seen(load(two, one)) == ("https://second", "CA of two", "token of two")


def test_whole_entry_of_the_first_file_counts_and_nothing_is_mixed_into_it(tmp_path: Path) -> None:
    one, two = files(tmp_path)

    access = load(one, two, context="x")
    assert seen(access) == ("https://first", "CA of one", "first")
    assert (access.tls_server_name, access.client_pem) == (None, None)
    hidden = load(two, one, context="mixed")
    assert (hidden.server, hidden.tls_server_name) == ("https://hidden", "hidden")


def test_context_may_join_entries_of_two_files_each_with_its_own_paths(tmp_path: Path) -> None:
    assert seen(load(*files(tmp_path), context="mixed")) == ("https://first", "CA of one", "token of two")


def test_missing_and_empty_files_of_a_list_add_nothing(tmp_path: Path) -> None:
    one, two = files(tmp_path)
    (tmp_path / "empty").touch()

    access = load(tmp_path / "none", "", tmp_path / "empty", one, two, context="x")
    assert seen(access) == ("https://first", "CA of one", "first")


def test_file_whose_name_has_a_colon_is_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a:b"
    path.write_text(FIRST.replace(", certificate-authority: ca.pem", ""))

    assert seen(load(path, context="x")) == ("https://first", None, "first")


def test_paths_are_made_absolute_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert listed("a:b/c:a") == [tmp_path / "a", tmp_path / "b/c"]


def test_files_that_kubectl_reads_are_those_of_kubeconfig_or_the_usual_one() -> None:
    assert usual_files({"KUBECONFIG": "a:b"}) == "a:b"
    assert usual_files({"KUBECONFIG": ""}) == "~/.kube/config"
    assert usual_files({}) == "~/.kube/config"


@pytest.mark.parametrize(
    ("names", "context", "says"),
    [
        (("none", "nor"), None, "none:.*nor: none of these files exists"),
        (
            ("one/config", "two/config"),
            "prod",
            "one/config:.*two/config: has no context 'prod'; it has: mixed, second, x",
        ),
        (("one/config", "none"), None, "has no current-context: name one with --context; it has: x"),
        (("one/config", "broken"), "x", "broken is not YAML"),
    ],
)
def test_list_that_leads_nowhere_is_one_line_that_says_why(
    tmp_path: Path, names: tuple[str, ...], context: str | None, says: str
) -> None:
    files(tmp_path)
    (tmp_path / "broken").write_text("a: [")

    with pytest.raises(UsageError, match=says) as caught:
        load(*(tmp_path / name for name in names), context=context)
    assert "\n" not in str(caught.value)
