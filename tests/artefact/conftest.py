"""The built functions, run as Lambda runs them. `make sam` builds and tests; other runs of pytest leave this folder alone,
since what lies in .aws-sam may be of another day.

KUBESYNC_ARTEFACT names SAM's folder (.aws-sam), KUBESYNC_ARTEFACT_PYTHON the Python 3.13 that the functions run on.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from harness.cli_stack import TOKEN, CliStack, a_cli_stack
from harness.secrets_watch import AWS_SECRET
from harness.wire.built_function import ROOT, Artefact, unpack
from harness.wire.template import TemplateLoader

collect_ignore_glob = [] if "KUBESYNC_ARTEFACT" in os.environ else ["test_*.py"]


@pytest.fixture(scope="session")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    sam = ROOT / os.environ["KUBESYNC_ARTEFACT"]
    machine = os.uname().machine
    dependencies = "DependenciesLayerArm" if machine == "aarch64" else "DependenciesLayer"
    python = os.environ["KUBESYNC_ARTEFACT_PYTHON"]
    into = tmp_path_factory.mktemp("opt")
    return unpack(sam / "build", sam / "runtime", python, (dependencies, "KubesyncLayer"), into)


@pytest.fixture(scope="session")
def declared(artefact: Artefact) -> dict[str, Any]:
    """The environment that the built template gives to the functions."""
    template = yaml.load((artefact.build / "template.yaml").read_text(), TemplateLoader)
    variables: dict[str, Any] = template["Globals"]["Function"]["Environment"]["Variables"]
    return variables


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    with a_cli_stack() as made:
        assert made.call("setup").status == 0
        secrets = made.boto().client("secretsmanager", endpoint_url=made.dynamodb_url)
        secrets.create_secret(Name=f"kubesync/{made.prefix}", SecretString=TOKEN)
        secrets.close()
        made.api.cluster.deploy("shop", "web", 2)
        made.api.cluster.expose("shop", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
        added = made.call(
            "cluster", "add", "prod", "--template", "default", "--server", made.api.url, "--domain", "prod.example.com",
            "--zone", made.zone_id, "--token", f"secretsmanager:kubesync/{made.prefix}",
        )  # fmt: skip
        assert added.status == 0, added.err
        yield made


@pytest.fixture(scope="module")
def environment(stack: CliStack, declared: dict[str, Any]) -> dict[str, str]:
    """What a function gets: every variable that the template declares, and nothing that it does not."""
    values = {
        "KUBESYNC_ALARMS_NOTIFY": "false",
        "KUBESYNC_NO_MASTER_MINUTES": "3",
        "KUBESYNC_SHARDS": "1",
        "KUBESYNC_CLUSTER_METRICS": "true",
        "KUBESYNC_DASHBOARD_METRICS": "true",
        "KUBESYNC_DEPLOYMENT": "test",
        "KUBESYNC_TABLE_PREFIX": stack.prefix,
        "KUBESYNC_MAX_RUNTIME_SECONDS": "2",
        "POWERTOOLS_SERVICE_NAME": "kubesync",
        "POWERTOOLS_LOG_LEVEL": "INFO",
        "MALLOC_ARENA_MAX": "1",
        "AWS_ENDPOINT_URL_DYNAMODB": stack.dynamodb_url,
        "AWS_ENDPOINT_URL_ROUTE_53": stack.route53.url,
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": stack.dynamodb_url,
        "AWS_ENDPOINT_URL_SSM": "",
        "AWS_ENDPOINT_URL_STS": "",
        "AWS_ENDPOINT_URL_EKS": "",
    }
    assert values.keys() == declared.keys()
    return {
        **values,
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": AWS_SECRET,
        "AWS_SESSION_TOKEN": "test",
    }
