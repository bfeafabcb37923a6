"""The life of a stack, from `sam deploy` to `sam delete`: what its owner sees in zones, tables and logs.

It begins as a stack of the release before, which is updated to what SAM has built now.
"""

import json
from pathlib import Path
from typing import Final

from aws.cloud import ARCHITECTURE, ROOT, STACK, Cloud, a_cloud, template_before, until
from harness.secrets_watch import TOKEN
from kubesync_local.standins.apiserver import ApiServer
from upgrade.release_before import extract_release_before

WATCH: Final = "/aws/lambda/kubesync-main-watch"
BUILD: Final = ROOT / ".aws-sam/build"
WEB: Final = {
    "kubernetes.default.svc.prod.example.com. A 30 10.68.0.1",
    "_https._tcp.kubernetes.default.svc.prod.example.com. SRV 30 0 100 443 kubernetes.default.svc.prod.example.com.",
    "web.shop.svc.prod.example.com. A 30 10.68.0.16",
    "_http._tcp.web.shop.svc.prod.example.com. SRV 30 0 100 80 web.shop.svc.prod.example.com.",
}
PAY: Final = {"pay.shop.svc.prod.example.com. A 30 10.68.0.17"}
NEW: Final = {"new.shop.svc.prod.example.com. A 30 10.68.0.18"}
TABLES: Final = ("AuditTable", "ControlTable", "StateTable", "UpstreamsTable")


def drift(cloud: Cloud) -> dict[str, list[object]]:
    """A full resync by invocation, as people do it: what differed, by cluster."""
    payload = (ROOT / "events/full-resync.json").read_bytes()
    answer = cloud.client("lambda").invoke(FunctionName="kubesync-main-resync", Payload=payload)
    report = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, report
    return {found["cluster"]: found["drift"] for found in report["clusters"]}


def test_stack_is_deployed_updated_rolled_back_and_deleted(tmp_path: Path) -> None:
    release = extract_release_before(tmp_path / "before")
    with a_cloud(tmp_path) as cloud, ApiServer() as api:
        zone_id = (
            cloud.client("route53")
            .create_hosted_zone(Name="example.com", CallerReference="1")["HostedZone"]["Id"]
            .removeprefix("/hostedzone/")
        )
        secret = cloud.client("secretsmanager").create_secret(Name="kubesync/prod", SecretString=TOKEN)["ARN"]
        zone = f"arn:aws:route53:::hostedzone/{zone_id}"

        def told() -> str:
            return f"{cloud.records(zone_id)}\n{cloud.said(WATCH)}"

        # A stack of the release before. Its first session begins by schedule.
        api.cluster.expose("shop", "web", {"ports": [{"name": "http", "port": 80}]})
        before = template_before(release, BUILD)
        cloud.deploy(
            before, HostedZoneArns=zone, SecretArns=secret, MaximumRuntimeSeconds="60", Architecture=ARCHITECTURE
        )
        cloud.kubesync(
            "cluster", "add", "prod", "--server", api.url, "--domain", "prod.example.com", "--zone", zone_id,
            "--token", "secretsmanager:kubesync/prod", release=release,
        )  # fmt: skip
        until(lambda: cloud.records(zone_id) == WEB, told)

        # The update, with another parameter, changes no record. Its sessions publish what comes next.
        was = cloud.resources()
        cloud.deploy(BUILD / "template.yaml", LagAlarmSeconds="90")
        assert cloud.records(zone_id) == WEB
        assert {name: was[name] for name in TABLES} == {name: cloud.resources()[name] for name in TABLES}
        [lag] = cloud.client("cloudwatch").describe_alarms(AlarmNames=[was["LagAlarm"]])["MetricAlarms"]
        assert lag["Threshold"] == 90.0
        api.cluster.expose("shop", "pay", {"ports": [{"port": 80}]})
        until(lambda: cloud.records(zone_id) == WEB | PAY, told)
        assert "cluster prod: services reached" in cloud.kubesync("doctor")
        assert drift(cloud) == {"prod": []}
        # What alarms look at: the session has held its lease for a minute.
        until(lambda: '"MasterHeartbeat":[1.0]' in cloud.said(WATCH), told)

        # Back to the release before, which goes on from what the newer one has stored.
        cloud.deploy(before)
        api.cluster.expose("shop", "new", {"ports": [{"port": 80}]})
        until(lambda: cloud.records(zone_id) == WEB | PAY | NEW, told)

        # The stack goes; records and tables stay.
        cloud.sam("delete", "--stack-name", STACK, "--region", "eu-central-1", "--no-prompts")
        assert cloud.client("lambda").list_functions()["Functions"] == []
        assert cloud.client("scheduler").list_schedules()["Schedules"] == []
        assert cloud.records(zone_id) == WEB | PAY | NEW
        stay = cloud.client("dynamodb").list_tables()["TableNames"]
        assert stay == [
            "kubesync-main-audit",
            "kubesync-main-control",
            "kubesync-main-state",
            "kubesync-main-upstreams",
        ]
