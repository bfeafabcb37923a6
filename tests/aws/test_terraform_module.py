"""The module in deploy/terraform on the same AWS: applied, publishing, without drift, and gone without its tables."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from aws.cloud import ARCHITECTURE, ROOT, a_cloud, until
from harness.secrets_watch import TOKEN
from kubesync_local.standins.apiserver import ApiServer
from package import BUILT, terraform_archives

MAIN: Final = """
provider "aws" {{
  s3_use_path_style           = true
  skip_credentials_validation = true
  skip_metadata_api_check     = true
}}

module "kubesync" {{
  source                  = "{module}"
  artifacts               = "{artifacts}"
  hosted_zone_arns        = ["arn:aws:route53:::hostedzone/{zone_id}"]
  secret_arns             = ["{secret}"]
  architecture            = "{architecture}"
  maximum_runtime_seconds = 60
}}
"""
TABLES: Final = ("audit_table", "control_table", "state_table", "upstreams_table")
WEB: Final = "web.shop.svc.prod.example.com. A 30 10.68.0.16"


def terraform(folder: Path, environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("terraform")
    if program is None:
        pytest.skip("there is no terraform on this machine")
    return subprocess.run(
        [program, *arguments, "-no-color"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_module_is_applied_publishes_and_is_destroyed_without_its_tables(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with a_cloud(tmp_path) as cloud, ApiServer() as api:
        route53 = cloud.client("route53")
        zone_id = route53.create_hosted_zone(Name="example.com", CallerReference="1")["HostedZone"]["Id"].rpartition(
            "/"
        )[2]
        secret = cloud.client("secretsmanager").create_secret(Name="kubesync/prod", SecretString=TOKEN)["ARN"]
        of_terraform = {name: value for name, value in os.environ.items() if name.startswith("TF_")}
        environment = {**cloud.environment, **of_terraform, "CHECKPOINT_DISABLE": "1"}
        (work / "main.tf").write_text(
            MAIN.format(
                module=ROOT / "deploy/terraform",
                artifacts=tmp_path / "zips",
                zone_id=zone_id,
                secret=secret,
                architecture=ARCHITECTURE,
            )
        )
        begun = terraform(work, environment, "init", "-input=false")
        if begun.returncode:
            pytest.skip(f"the AWS provider of terraform cannot be had here: {begun.stderr.strip()[:300]}")
        terraform_archives(ROOT, BUILT, tmp_path / "zips")
        applied = terraform(work, environment, "apply", "-auto-approve", "-input=false")
        assert applied.returncode == 0, applied.stderr

        api.cluster.expose("shop", "web", {"ports": [{"port": 80}]})
        cloud.kubesync(
            "cluster", "add", "prod", "--server", api.url, "--domain", "prod.example.com", "--zone", zone_id,
            "--token", "secretsmanager:kubesync/prod", "--template", "default",
        )  # fmt: skip
        until(lambda: WEB in cloud.records(zone_id), lambda: cloud.said("/aws/lambda/kubesync-main-watch"))
        planned = terraform(work, environment, "plan", "-input=false")
        differ = re.findall(r"^  # module\.kubesync\.(\S+) will be", planned.stdout, re.MULTILINE)
        # MiniStack answers with other values of alarms than it was given.
        assert [name for name in differ if not name.startswith("aws_cloudwatch_metric_alarm.")] == [], planned.stdout

        kept = terraform(work, environment, "destroy", "-auto-approve", "-input=false")
        assert "Instance cannot be destroyed" in kept.stderr
        for table in TABLES:
            forgotten = terraform(work, environment, "state", "rm", f"module.kubesync.aws_dynamodb_table.{table}")
            assert forgotten.returncode == 0, forgotten.stderr
        gone = terraform(work, environment, "destroy", "-auto-approve", "-input=false")
        assert gone.returncode == 0, gone.stderr
        assert cloud.client("lambda").list_functions()["Functions"] == []
        assert WEB in cloud.records(zone_id)
        assert cloud.client("dynamodb").list_tables()["TableNames"] == [
            "kubesync-main-audit",
            "kubesync-main-control",
            "kubesync-main-state",
            "kubesync-main-upstreams",
        ]
