"""Reads manifests: files, folders and standard input, each with one or several YAML or JSON documents."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from kubesync.domain.errors import UsageError
from kubesync.domain.objects import Resource
from kubesync.kubernetes.wire.registry import WIRE

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_MAX_BYTES: Final = 16_000_000
# An alias may name an alias: a file of a few lines can hold more values than any memory.
_MAX_VALUES: Final = 300_000


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object. ``place`` says where it stands: ``web.yaml document 2``. ``resource``: None: kubesync does not read this kind."""

    place: str
    resource: Resource | None
    value: dict[str, Any]


class _Loader(yaml.SafeLoader):
    """As Kubernetes reads YAML: a date is text."""


# In C where it is there: 20 times as fast.
_Counter: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_manifests(given: Sequence[str]) -> list[Manifest]:
    """All objects, in the order of files and documents. Lists are taken apart.

    Raises:
        UsageError: a file cannot be read, a document is no object, or there is no document at all. The message names the file and
            the document.
    """
    read: list[Manifest] = []
    documents = 0
    for name, text in _texts(given):
        for place, document in _documents(name, text):
            documents += 1
            read += _of_document(place, document)
    if not documents:  # a program before the pipe failed: that is no proof of good manifests
        names = ", ".join("standard input" if name == "-" else name for name in given)
        raise UsageError(f"nothing to check: there is no document in {names}")
    return read


def _texts(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in given:
        if name == "-":
            yield "standard input", _text("standard input", sys.stdin.buffer.read(_MAX_BYTES + 1))
            continue
        for file in _files(Path(name)):
            try:
                with file.open("rb") as opened:
                    data = opened.read(_MAX_BYTES + 1)
            except OSError as error:
                raise UsageError(f"{file}: {error.strerror}") from None
            yield str(file), _text(str(file), data)


def _files(path: Path) -> list[Path]:
    """The file itself, or the manifests of a folder, in the order of their names."""
    try:
        if not path.is_dir():
            return [path]
        found = sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES and each.is_file())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not found:
        raise UsageError(f"{path} holds no manifest: their names end in {', '.join(_SUFFIXES)}")
    return found


def _text(name: str, data: bytes) -> str:
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{name} is longer than {_MAX_BYTES // 1_000_000} MB: it is no manifest")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: byte {error.start + 1}") from None


def _documents(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """The documents that are not empty, each with its place. Raises UsageError."""
    _refuse_huge(name, text)
    number = 0
    try:
        documents = yaml.load_all(text, _Loader)
        while True:
            number += 1
            try:
                document = next(documents)
            except StopIteration:
                return
            if document is not None:
                yield f"{name} document {number}", _plain(document, [_MAX_VALUES])
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise UsageError(f"{name} document {number} is not YAML: line {line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{name} document {number} is not YAML: {str(error).partition(chr(10))[0]}") from None
    except RecursionError:
        raise UsageError(f"{name} document {number} is nested too deeply, or holds itself") from None


def _refuse_huge(name: str, text: str) -> None:
    """Count the values of each document before one is built: a value takes 30 times its text, and a long time.

    Raises:
        UsageError: a document holds too many.
    """
    number = values = 0
    try:
        for event in yaml.parse(text, _Counter):
            if isinstance(event, yaml.DocumentStartEvent):
                number, values = number + 1, 0
            elif isinstance(event, yaml.NodeEvent):
                values += 1
                if values > _MAX_VALUES:
                    raise UsageError(
                        f"{name} document {number} holds more than {_MAX_VALUES:,} values: it is no manifest"
                    )
    except yaml.YAMLError:
        return  # whoever builds the documents says what is wrong


def _plain(value: Any, room: list[int]) -> Any:
    """The value as JSON has it, with every alias written out."""
    room[0] -= 1
    if room[0] < 0:
        raise ValueError("its aliases make it too large")
    match value:
        case dict():
            return {str(key): _plain(each, room) for key, each in value.items()}
        case list():
            return [_plain(each, room) for each in value]
        case None | bool() | int() | float() | str():
            return value
    raise ValueError(f"it holds a {type(value).__name__}, which JSON has not")


def _of_document(place: str, document: Any) -> Iterator[Manifest]:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise UsageError(f"{place} is no Kubernetes object: it has no kind")
    version = document.get("apiVersion")
    lists = {"List", *(f"{source.kind}List" for source in WIRE.values())}
    if document["kind"] in lists and isinstance(document.get("items"), list):
        for number, item in enumerate(document["items"], 1):
            if isinstance(item, dict):  # the items of a ServiceList name no kind
                kind = document["kind"].removesuffix("List")
                item = {"apiVersion": version, **({"kind": kind} if kind else {}), **item}
            yield from _of_document(f"{place} item {number}", item)
        return
    resource = _resource(str(version), document["kind"])
    if resource is not None and not isinstance(document.get("metadata"), dict):
        raise UsageError(f"{place} is no Kubernetes object: it has no metadata")
    yield Manifest(place, resource, document)


def _resource(version: str, kind: str) -> Resource | None:
    """The resource of such objects. Its path is /api/ or /apis/, and their apiVersion."""
    found = (
        resource for resource, source in WIRE.items() if (source.path.split("/", 2)[2], source.kind) == (version, kind)
    )
    return next(found, None)
