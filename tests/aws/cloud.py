"""An AWS of another maker on this machine: MiniStack, bound to loopback, with what SAM deploys to it.

It enforces no policy and no quota. It has CloudFormation, Scheduler, Lambda with layers, DynamoDB, Route 53, Secrets Manager and
CloudWatch Logs behind one address, so a stack lives here as its owner would see it.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3

ROOT: Final = Path(__file__).resolve().parents[2]
STACK: Final = "kubesync"
ARCHITECTURE: Final = "arm64" if os.uname().machine == "aarch64" else "x86_64"
"""Functions run on this machine."""
PATIENCE_SECONDS: Final = 180.0
_REGION: Final = "eu-central-1"


@dataclass(frozen=True, slots=True)
class Cloud:
    """The running server. ``environment`` leads commands to it."""

    url: str
    environment: Mapping[str, str]
    log: Path

    def client(self, service: str) -> Any:
        return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=_REGION).client(
            service, endpoint_url=self.url
        )  # type: ignore[call-overload]  # the name is not known here

    def kubesync(self, *arguments: str, release: Path = ROOT) -> str:
        """Run the command of a release to its end, as the stack's owner does. Returns what it prints."""
        command = [sys.executable, "-m", "kubesync_local", *arguments]
        paths = os.pathsep.join(str(release / part) for part in ("layers/kubesync", "local"))
        environment = {**self.environment, "PYTHONPATH": paths}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"kubesync {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def sam(self, *arguments: str) -> str:
        """Run SAM CLI to its end, in its own environment."""
        command = [str(ROOT / ".venv-sam/bin/sam"), *arguments]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        assert done.returncode == 0, f"sam {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def deploy(self, template: Path, **parameters: str) -> None:
        """Create the stack, or update it. A parameter that is not named keeps its value."""
        values = [f"{name}={value}" for name, value in parameters.items()]
        overrides = ["--parameter-overrides", *values] if values else []
        self.sam(
            "deploy", "--template-file", str(template), "--stack-name", STACK, "--region", _REGION, "--resolve-s3",
            "--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-fail-on-empty-changeset",
            "--no-progressbar", *overrides,
        )  # fmt: skip

    def resources(self) -> dict[str, str]:
        """Logical to physical ids."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=STACK)
        return {
            each["LogicalResourceId"]: each["PhysicalResourceId"]
            for page in pages
            for each in page["StackResourceSummaries"]
        }

    def records(self, zone_id: str) -> set[str]:
        """``name TYPE TTL value`` of each record set, the zone's own and journals left out."""
        pages = self.client("route53").get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone_id)
        found = [record for page in pages for record in page["ResourceRecordSets"]]
        return {
            f"{each['Name']} {each['Type']} {each['TTL']} {value['Value']}"
            for each in found
            if each["Type"] in ("A", "SRV")
            for value in each["ResourceRecords"]
        }

    def said(self, group: str) -> str:
        """What a function has logged."""
        logs = self.client("logs")
        streams = logs.describe_log_streams(logGroupName=group)["logStreams"]
        events = [
            event["message"]
            for stream in streams
            for event in logs.get_log_events(
                logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True
            )["events"]
        ]
        return "\n".join(events)


def until(there: Callable[[], bool], said: Callable[[], str], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until something is there: the scheduler begins a session once a minute."""
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, said()
        time.sleep(0.5)


@contextmanager
def a_cloud(scratch: Path) -> Iterator[Cloud]:
    """An empty AWS. It and all functions that it runs end with it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, log = f"http://127.0.0.1:{port}", scratch / "aws.log"
    python = Path(os.environ["KUBESYNC_AWS_PYTHON"]).parent
    environment = {
        "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",  # functions run on the Python 3.13 that is found first
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SAM_CLI_TELEMETRY": "0",
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": _REGION,
        "AWS_DEFAULT_REGION": _REGION,
    }
    server = {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": _REGION,
        "IOT_MTLS_ENABLED": "false",
        "S3_DATA_DIR": str(scratch / "s3"),
    }
    plain = {name: value for name, value in environment.items() if name != "AWS_ENDPOINT_URL"}
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(ROOT / ".venv-aws/bin/ministack")],
            env={**plain, **server},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        until(lambda: _answers(port), log.read_text, 60.0)
        yield Cloud(url, environment, log)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def template_before(release: Path, build: Path) -> Path:
    """The template of the release before, deployable: its own package and functions, on the libraries that SAM has built."""
    package = release / "built" / "KubesyncLayer" / "python"
    shutil.copytree(release / "layers/kubesync/kubesync", package / "kubesync")
    text = (release / "template.yaml").read_text()
    text = text.replace("ContentUri: layers/kubesync\n", f"ContentUri: {package.parent}\n")
    text = text.replace("ContentUri: layers/dependencies\n", f"ContentUri: {build / 'DependenciesLayer'}\n")
    text = text.replace("CodeUri: functions/", f"CodeUri: {release}/functions/")
    template = release / "built" / "template.yaml"
    template.write_text(text)
    return template
