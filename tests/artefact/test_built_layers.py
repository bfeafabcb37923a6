"""What `sam build` put into the layers: size, wheels of the right architecture, clients that open, time to import."""

import re
import struct
import subprocess
from pathlib import Path
from typing import Final

import pytest

from harness.wire.built_function import Artefact

# Layers together, unzipped; Lambda takes 250 MB: every one of them is read at a cold start.
MOST_BYTES: Final = 45_000_000
MOST_CPU_SECONDS: Final = 1.2
# https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html: e_machine
MACHINES: Final = {"x86_64": 62, "aarch64": 183}
# Amazon Linux 2023, on which Lambda's Python 3.13 runs: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html
GLIBC: Final = (2, 34)
LAYERS: Final = {"DependenciesLayer": "x86_64", "DependenciesLayerArm": "aarch64"}

_IMPORT: Final = """\
import sys, time
sys.path[:0] = sys.argv[1:]
import app
print(time.process_time())
"""
_CLIENTS: Final = """\
import sys
sys.path[:0] = sys.argv[1:2]
import boto3
session = boto3.Session("id", "secret", region_name="eu-west-1")
for service in sys.argv[2:]:
    client = session.client(service)
    print(service, client.meta.endpoint_url)
    client.close()
for region in ("cn-north-1", "us-gov-west-1", "eu-central-1"):
    print(boto3.Session("id", "secret", region_name=region).client("dynamodb").meta.endpoint_url)
"""


def ran(artefact: Artefact, program: str, *arguments: str) -> str:
    done = subprocess.run(
        artefact.command(program, *arguments), capture_output=True, text=True, timeout=60, check=False, env={}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_layers_are_small(artefact: Artefact, capsys: pytest.CaptureFixture[str]) -> None:
    kubesync = size_of(artefact.build / "KubesyncLayer")
    for layer in LAYERS:
        dependencies = size_of(artefact.build / layer)
        with capsys.disabled():
            print(f"\n· {layer}: {dependencies / 1e6:.1f} MB, KubesyncLayer: {kubesync / 1e6:.1f} MB unzipped")
        assert dependencies + kubesync < MOST_BYTES


@pytest.mark.parametrize("layer", LAYERS)
def test_compiled_files_are_of_the_layers_architecture(layer: str, artefact: Artefact) -> None:
    files = sorted((artefact.build / layer).rglob("*.so*"))
    assert [path.name for path in files if "_pydantic_core" in path.name]
    for path in files:
        header = path.read_bytes()[:20]
        assert (header[:4], struct.unpack("<H", header[18:20])[0]) == (b"\x7fELF", MACHINES[LAYERS[layer]]), path.name


@pytest.mark.parametrize("layer", LAYERS)
def test_compiled_files_need_no_newer_glibc_than_lambda_has(layer: str, artefact: Artefact) -> None:
    files = sorted((artefact.build / layer).rglob("*.so*"))
    needed = {
        (int(found[1]), int(found[2]))
        for path in files
        for found in re.finditer(rb"GLIBC_(\d+)\.(\d+)", path.read_bytes())
    }
    assert len(files) >= 3
    assert max(needed) <= GLIBC


@pytest.mark.parametrize("layer", [*LAYERS, "KubesyncLayer"])
def test_every_module_is_compiled_for_its_place_on_lambda_whatever_the_time_of_its_file(
    layer: str, artefact: Artefact
) -> None:
    python = artefact.build / layer / "python"
    compiled = {path: path.read_bytes() for path in python.rglob("*.pyc")}

    assert len(compiled) >= len([path for path in python.rglob("*.py") if path.stat().st_size]) >= 100
    # PEP 552: flags 1 is a hash that is not compared with the source. With flags 0 Python compares times, which zip files round.
    assert {path.name for path, data in compiled.items() if data[4:8] != b"\1\0\0\0"} == set()
    place = f"/opt/python/{'kubesync/settings.py' if layer == 'KubesyncLayer' else 'six.py'}".encode()
    assert any(place in data for data in compiled.values())


@pytest.mark.parametrize("layer", LAYERS)
def test_wheels_have_the_tags_of_lambdas_python_and_architecture(layer: str, artefact: Artefact) -> None:
    wheels = sorted((artefact.build / layer / "python").glob("*.dist-info/WHEEL"))
    tags = {path.parent.name: re.findall(r"^Tag: (.+)$", path.read_text(), re.MULTILINE) for path in wheels}

    assert len(tags) >= 15
    fitting = re.compile(rf"(py2\.py3|py3|py2)-none-any|(cp313-cp313|cp3\d+-abi3)-manylinux\w+_{LAYERS[layer]}")
    assert {name: tag for name, tag in tags.items() if not any(fitting.fullmatch(each) for each in tag)} == {}
    assert [name for name, tag in tags.items() if any(LAYERS[layer] in each for each in tag)]


def test_both_architectures_hold_the_same_files(artefact: Artefact) -> None:
    def names(layer: str) -> set[str]:
        root = artefact.build / layer
        found = (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        return {name.replace("x86_64", "ARCH").replace("aarch64", "ARCH") for name in found}

    assert names("DependenciesLayer") == names("DependenciesLayerArm")


def test_layers_hold_neither_tests_nor_leftovers(artefact: Artefact) -> None:
    names = {path.name for path in artefact.opt.iterdir()}

    assert {"kubesync", "boto3", "botocore", "pydantic", "requests", "aws_lambda_powertools"} <= names
    assert (
        names & {"pip", "bin", "Makefile", "trim.py", "requirements.txt", "pytest", "moto", "kubesync_local"} == set()
    )
    sources = list((artefact.opt / "kubesync").rglob("*.py"))
    compiled = list((artefact.opt / "kubesync").rglob("*.pyc"))
    assert len(sources) == len(compiled) > 50


def test_every_client_that_is_left_opens(artefact: Artefact) -> None:
    services = sorted(path.name for path in (artefact.opt / "botocore/data").iterdir() if path.is_dir())

    assert services == ["dynamodb", "eks", "route53", "secretsmanager", "ssm", "sts"]
    assert ran(artefact, _CLIENTS, str(artefact.opt), *services).splitlines() == [
        "dynamodb https://dynamodb.eu-west-1.amazonaws.com",
        "eks https://eks.eu-west-1.amazonaws.com",
        "route53 https://route53.amazonaws.com",
        "secretsmanager https://secretsmanager.eu-west-1.amazonaws.com",
        "ssm https://ssm.eu-west-1.amazonaws.com",
        "sts https://sts.eu-west-1.amazonaws.com",
        "https://dynamodb.cn-north-1.amazonaws.com.cn",
        "https://dynamodb.us-gov-west-1.amazonaws.com",
        "https://dynamodb.eu-central-1.amazonaws.com",
    ]


@pytest.mark.parametrize("function", ["WatchFunction", "ResyncFunction"])
def test_import_is_quick(function: str, artefact: Artefact, capsys: pytest.CaptureFixture[str]) -> None:
    task = str(artefact.build / function)
    seconds = min(float(ran(artefact, _IMPORT, task, str(artefact.opt))) for _ in range(3))

    with capsys.disabled():
        print(f"\n· {function}: {seconds:.2f} s of CPU to start Python and import it")
    assert seconds < MOST_CPU_SECONDS
