"""A stack of four shards on the same AWS: each has its master, and one that is dead shows in its own alarm's metric."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from aws.cloud import ARCHITECTURE, ROOT, Cloud, a_cloud, until
from harness.secrets_watch import TOKEN
from kubesync_local.standins.apiserver import ApiServer

WATCH: Final = "/aws/lambda/kubesync-main-watch"
SHARDS: Final = ("0", "1", "2", "3")
DEAD: Final = "2"


def heartbeats(cloud: Cloud) -> dict[str, int]:
    """How many minutes each shard's master has reported, by the dimension that its alarm looks at."""
    found = dict.fromkeys(SHARDS, 0)
    for line in cloud.said(WATCH).splitlines():
        if '"MasterHeartbeat"' in line:
            document = json.loads(line)
            found[document.get("shard", "0")] += int(document["MasterHeartbeat"][0])
    return found


def test_each_shard_has_its_master_and_a_dead_one_shows(tmp_path: Path) -> None:
    with a_cloud(tmp_path) as cloud, ExitStack() as stack:
        route53 = cloud.client("route53")
        zone_id = route53.create_hosted_zone(Name="example.com", CallerReference="1")["HostedZone"]["Id"].rpartition(
            "/"
        )[2]
        secret = cloud.client("secretsmanager").create_secret(Name="kubesync/all", SecretString=TOKEN)["ARN"]
        cloud.deploy(
            ROOT / ".aws-sam/build/template.yaml", HostedZoneArns=f"arn:aws:route53:::hostedzone/{zone_id}", SecretArns=secret,
            MaximumRuntimeSeconds="60", Architecture=ARCHITECTURE, Shards="4",
        )  # fmt: skip
        expected = set()
        for shard in SHARDS:
            api = stack.enter_context(ApiServer())
            api.cluster.expose("shop", "web", {"ports": [{"port": 80}]})
            cloud.kubesync(
                "cluster", "add", f"c{shard}", "--server", api.url, "--domain", f"c{shard}.example.com", "--zone", zone_id,
                "--token", "secretsmanager:kubesync/all", "--template", "default", "--shard", shard,
            )  # fmt: skip
            expected.add(f"web.shop.svc.c{shard}.example.com. A 30 10.68.0.16")

        until(lambda: expected <= cloud.records(zone_id), lambda: f"{cloud.records(zone_id)}\n{cloud.said(WATCH)}")
        until(lambda: all(heartbeats(cloud).values()), lambda: str(heartbeats(cloud)))

        # Nothing starts the shard any more. Its last session ends within its minute.
        name = f"kubesync-main-watch-shard{DEAD}"
        scheduler = cloud.client("scheduler")
        found = scheduler.get_schedule(Name=name)
        kept = {field: found[field] for field in ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")}
        scheduler.update_schedule(**kept, State="DISABLED")
        table = cloud.client("dynamodb")

        def held(shard: str) -> bool:
            key = {"pk": {"S": f"lease#{shard}"}, "sk": {"S": "lease"}}
            return not table.get_item(TableName="kubesync-main-control", Key=key)["Item"]["released"]["BOOL"]

        def after_a_minute_of_the_others() -> tuple[int, int]:
            """The dead shard's heartbeats, before each of the others has reported once more, and then."""
            before = heartbeats(cloud)
            until(
                lambda: all(heartbeats(cloud)[shard] > before[shard] for shard in SHARDS if shard != DEAD),
                lambda: f"{before} {heartbeats(cloud)}",
            )
            return before[DEAD], heartbeats(cloud)[DEAD]

        until(lambda: not held(DEAD), lambda: cloud.said(WATCH))
        # A session reports its last minute after it has released the lease, and one that was started earlier may follow.
        after_a_minute_of_the_others()
        until(lambda: not held(DEAD), lambda: cloud.said(WATCH))
        before, now = after_a_minute_of_the_others()
        assert now == before
        [alarm] = cloud.client("cloudwatch").describe_alarms(AlarmNames=[f"kubesync-main-NoMaster-shard{DEAD}"])[
            "MetricAlarms"
        ]
        assert {each["Name"]: each["Value"] for each in alarm["Dimensions"]} == {
            "service": "kubesync-main",
            "shard": DEAD,
        }
