"""How parts are joined: which clusters may be reached how, and that nothing is connected before a session runs."""

import base64
from pathlib import Path
from typing import Any

import boto3
import pytest

from harness.fakes.manual_clock import ManualClock
from harness.seen.builders import a_config
from kubesync.bootstrap.application import Application, ConfiguredAccess
from kubesync.domain.errors import DeniedError
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.settings import Settings

POLICY = ReflectorPolicy()


@pytest.fixture
def session() -> boto3.Session:
    return boto3.Session(aws_access_key_id="AKIATEST", aws_secret_access_key="secret", region_name="eu-west-1")


def access(session: boto3.Session, *, local: bool, **changes: Any) -> Any:
    return ConfiguredAccess(session, ManualClock(), local=local)(a_config(**changes), POLICY)


def test_address_trust_and_times_are_those_of_the_configuration(session: boto3.Session) -> None:
    found = access(session, local=False, ca_pem="PEM", insecure_skip_tls_verify=True)
    assert (found.server, found.ca_pem, found.insecure_skip_tls_verify) == ("https://prod.test:6443", "PEM", True)
    assert found.token_source is None
    assert found.policy is POLICY


def test_kubeconfig_works_on_a_persons_machine_only(session: boto3.Session) -> None:
    with pytest.raises(DeniedError, match="on a person's machine only"):
        access(session, local=False, kubeconfig="/srv/.kube/config")


@pytest.mark.parametrize("reference", ["file:/etc/token", "env:TOKEN"])
def test_secrets_of_a_machine_are_no_secrets_of_lambda_i8(
    session: boto3.Session, reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "secret-token")
    with pytest.raises(DeniedError) as refused:
        access(session, local=False, token=reference)
    assert "secret-token" not in str(refused.value)
    assert access(session, local=True, token=reference).token_source is not None


def test_reference_that_is_none_is_refused_without_being_repeated_i8(session: boto3.Session) -> None:
    # People paste the token itself where its reference belongs.
    with pytest.raises(DeniedError) as refused:
        access(session, local=True, token="eyJhbGciOiJSUzI1NiJ9.pasted")
    assert "pasted" not in str(refused.value)


def test_token_is_shared_by_the_listeners_of_a_cluster(session: boto3.Session, tmp_path: Path) -> None:
    configured = ConfiguredAccess(session, ManualClock(), local=True)
    config = a_config(token=f"file:{tmp_path / 'token'}")
    assert configured(config, POLICY).token_source is configured(config, POLICY).token_source
    other = a_config(name="other", token=f"file:{tmp_path / 'other'}")
    assert configured(config, POLICY).token_source is not configured(other, POLICY).token_source


def test_eks_cluster_is_named_plainly_or_by_its_arn(session: boto3.Session) -> None:
    configured = ConfiguredAccess(session, ManualClock(), local=False)
    plain = configured(a_config(eks="prod"), POLICY).token_source
    by_arn = configured(a_config(eks="arn:aws:eks:us-east-1:123456789012:cluster/prod"), POLICY).token_source
    assert plain is not None
    assert by_arn is not None
    for source, region in ((plain, "eu-west-1"), (by_arn, "us-east-1")):
        token = source.token()
        assert token is not None
        encoded = token.removeprefix("k8s-aws-v1.")
        signed = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        assert signed.startswith(f"https://sts.{region}.amazonaws.com/")
    assert plain is not by_arn


def test_nothing_is_connected_before_a_session_runs(session: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr("socket.socket.connect", refuse)
    application = Application(Settings(), local=True, scheduler=ManualClock(), session=session)
    first, second = application.new_session(), application.new_session()
    assert len(first.report.session) == 12
    assert first.report.session != second.report.session


def test_own_way_to_reach_clusters_comes_first(session: boto3.Session) -> None:
    def own(*_: object) -> Any:
        raise AssertionError

    assert Application(Settings(), access_for=own, session=session).access() is own
    assert isinstance(Application(Settings(), session=session).access(), ConfiguredAccess)
