"""Makes what a release ships, in ``dist/``. The same sources lead to the same bytes, whenever and wherever it runs.

kubesync-VERSION-py3-none-any.whl   the command
kubesync-VERSION-aws.zip            the template and what `sam build` made for it, ready for `sam deploy`
kubesync-VERSION-aws.cdx.json       CycloneDX: the libraries in the layer, with the hashes of their files
SHA256SUMS                          of all of these

`package.py --only-wheel` makes the wheel alone, which needs no built functions. Times are those of SOURCE_DATE_EPOCH, or of the
last commit; entries are sorted; modes are 0644 and 0755.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from check_tree import tracked_files

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "dist"
BUILT: Final = ROOT / ".aws-sam/build"
_EARLIEST: Final = 315532800  # 1980-01-01: a zip file knows no earlier time
_LAYER_PINS: Final = ROOT / "layers/dependencies/requirements.txt"


class PackageError(Exception):
    """Something cannot be made. The message says what to do."""


def version_of(root: Path) -> str:
    """The version in ``pyproject.toml``."""
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def source_epoch(root: Path) -> int:
    """The time that stands for this source: SOURCE_DATE_EPOCH, else of the last commit, else 1980."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        asked = run(["git", "-C", str(root), "log", "-1", "--format=%ct"], may_fail=True)
        given = asked.stdout.strip()
    return max(int(given), _EARLIEST) if given.isdecimal() else _EARLIEST


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, may_fail: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end.

    Raises:
        PackageError: it fails (unless it may). The message is what it said.
    """
    done = subprocess.run(  # noqa: S603
        command,
        env={**os.environ, **(environment or {})},
        umask=0o022,  # a wheel holds the modes of what is made on the way
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and not may_fail:
        raise PackageError(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}".rstrip())
    return done


def build_wheel(root: Path, output: Path, epoch: int) -> Path:
    """Build the wheel from a copy of the tracked files: nothing that lies about here gets into it."""
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch, "source"), Path(scratch, "made")
        for path in tracked_files(root):
            copy = source / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            copy.chmod(_mode(path))
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        run(
            [*pip, "--no-deps", "--no-build-isolation", "--no-cache-dir", "--wheel-dir", str(made), str(source)],
            {"SOURCE_DATE_EPOCH": str(epoch)},
        )
        (wheel,) = made.iterdir()
        return Path(shutil.copyfile(wheel, output / wheel.name))


def zip_folder(folder: Path, target: Path, top: str, epoch: int, more: Sequence[Path] = ()) -> Path:
    """Write a folder, and further files, to a zip file below the folder ``top``; empty: into it."""
    moment = time.gmtime(epoch)[:6]
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    files |= {path.name: path for path in more}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{top}/{name}" if top else name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, so that modes count
            entry.external_attr = (0o100000 | _mode(files[name])) << 16
            archive.writestr(entry, files[name].read_bytes())
    return target


def write_sbom(root: Path, target: Path, epoch: int) -> Path:
    """List the libraries of the layer as CycloneDX 1.6; the tool validates what it writes."""
    tool = root / ".venv-tools/bin/cyclonedx-py"
    described = ["--pyproject", str(root / "pyproject.toml"), "--mc-type", "application"]
    form = ["--spec-version", "1.6", "--output-format", "JSON", "--validate", "--output-reproducible"]
    run(
        [str(tool), "requirements", str(_LAYER_PINS), *described, *form, "--output-file", str(target)],
        {"SOURCE_DATE_EPOCH": str(epoch)},
    )
    return target


def write_sums(output: Path, made: Sequence[Path]) -> Path:
    """Write ``SHA256SUMS``, in the form of sha256sum."""
    sums = output / "SHA256SUMS"
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made)]
    sums.write_text("".join(lines), encoding="ascii")
    return sums


def terraform_archives(root: Path, built: Path, output: Path) -> list[Path]:
    """One zip file for each function and layer: what the module in deploy/terraform uploads.

    Raises:
        PackageError: the functions are not built.
    """
    if not (built / "template.yaml").is_file():
        raise PackageError(f"{built} holds no built template: run make sam, with Python 3.13")
    output.mkdir(parents=True, exist_ok=True)
    epoch = source_epoch(root)
    functions = {"watch": "WatchFunction", "resync": "ResyncFunction"}
    layers = {name: name for name in ("DependenciesLayer", "DependenciesLayerArm", "KubesyncLayer")}
    return [
        zip_folder(built / folder, output / f"{name}.zip", "", epoch)
        for name, folder in {**functions, **layers}.items()
    ]


def package(root: Path, built: Path, output: Path, *, only_wheel: bool = False) -> list[Path]:
    """Make everything again in an empty folder.

    Raises:
        PackageError: the functions are not built, or a tool fails.
    """
    if not only_wheel and not (built / "template.yaml").is_file():
        raise PackageError(f"{built} holds no built template: run make sam, with Python 3.13")
    epoch = source_epoch(root)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    wheel = build_wheel(root, output, epoch)
    if only_wheel:
        return [wheel]
    name = f"kubesync-{version_of(root)}-aws"
    made = [
        wheel,
        zip_folder(built, output / f"{name}.zip", name, epoch, [root / "LICENSE"]),
        write_sbom(root, output / f"{name}.cdx.json", epoch),
    ]
    return [*made, write_sums(output, made)]


def _mode(path: Path) -> int:
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def main(argv: Sequence[str]) -> int:
    """Make everything, and say what."""
    try:
        if "--terraform" in argv:
            made = terraform_archives(ROOT, BUILT, OUTPUT / "terraform")
        else:
            made = package(ROOT, BUILT, OUTPUT, only_wheel="--only-wheel" in argv)
    except PackageError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for path in made:
        sys.stdout.write(f"· {path.relative_to(ROOT)}: {path.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
