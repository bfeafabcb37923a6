"""The file of ``kubesync cluster apply``: a YAML document with a list ``clusters``, each with a name and options (see ``options``).

    apiVersion: kubesync.io/v1
    clusters:
      - name: prod
        server: https://10.20.30.40:6443
        token: secretsmanager:kubesync/prod
        domain: prod.example.com
        zones: [Z0123456789ABCDEFGHIJ]
        ttl: 60

A file without ``apiVersion`` was written for a release in which a new cluster's template did not depend on its zones.
It is read with PyYAML's safe loader. Messages name the line and never quote a value: it may be a secret that somebody put there.
"""

import difflib
import sys
from collections.abc import Callable, Iterator, Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import yaml

from kubesync.aws.tables.control.clusters import valid_cluster_name
from kubesync.domain.errors import UsageError
from kubesync_local.commands.cluster.options import KINDS, Options
from kubesync_local.registration.templates import written_template

API_VERSION: Final = "kubesync.io/v1"
_MOST_BYTES: Final = 4_000_000
_IN_WORDS: Final = {str: "a text", bool: "true or false", int: "a whole number", list: "a list of texts"}
_ONE_OF: Final = {
    "endpoints_source": ("auto", "endpoints", "endpointslices"),
    "policy": ("sync", "upsert-only", "create-only"),
    "on_delete": ("remove", "retain"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One cluster of the file.

    Args:
        name: empty if it has none that is valid.
        title: names it in messages.
        line: where it begins, from 1.
        unusable: options that are there with a value of another form.
    """

    name: str
    title: str
    options: Options
    line: int
    unusable: AbstractSet[str] = frozenset()


@dataclass(slots=True)
class ClustersFile:
    """A file, and what is wrong with it."""

    path: str
    api_version: str = ""
    entries: list[Entry] = field(default_factory=list)
    _problems: list[tuple[int, str]] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """What is wrong, one line each, with the line of the file, in its order."""
        return [f"{self.path}:{line}: {text}" for line, text in sorted(self._problems, key=lambda each: each[0])]

    def wrong(self, line: int, text: str) -> None:
        """Note a problem."""
        self._problems.append((line, text))


def read_clusters_file(path: str) -> ClustersFile:
    """Read and check the form of a file; ``-``: standard input. Raises UsageError if it cannot be read at all."""
    shown = "standard input" if path == "-" else path
    found = ClustersFile(shown)
    try:
        root = _only_document(yaml.SafeLoader(_text_of(path, shown)), shown)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UsageError(f"{shown}{'' if mark is None else f':{mark.line + 1}'}: is not YAML") from None
    except yaml.YAMLError:
        raise UsageError(f"{shown}: is not YAML") from None
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(f"{shown}: has no list `clusters`")
    rows: yaml.Node | None = None
    for key, value, line in _members(root, found.wrong):
        if key == "clusters":
            rows = value
        elif key != "apiVersion":
            found.wrong(line, f"{key!r} is not known here: only `apiVersion` and `clusters`")
        elif _text(value) == API_VERSION:
            found.api_version = API_VERSION
        else:
            found.wrong(line, f"apiVersion: this release reads {API_VERSION}")
    if not isinstance(rows, yaml.SequenceNode):
        found.wrong(root.start_mark.line + 1, "has no list `clusters`")
        return found
    for number, row in enumerate(rows.value, 1):
        _read_entry(row, number, found)
    return found


def _only_document(loader: Any, shown: str) -> yaml.Node | None:
    root = loader.get_node() if loader.check_node() else None
    if loader.check_node():
        raise UsageError(
            f"{shown}:{loader.peek_event().start_mark.line + 1}: a second YAML document begins here (---): put all clusters into "
            "one list `clusters`, in one document"
        )
    return root


def _text_of(path: str, shown: str) -> str:
    try:
        data = sys.stdin.buffer.read(_MOST_BYTES + 1) if path == "-" else Path(path).expanduser().read_bytes()
        text = data.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{shown}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{shown}: is not YAML in UTF-8") from None
    except ValueError:
        raise UsageError(f"{shown}: is not the path of a file") from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{shown}: has more than {_MOST_BYTES:,} bytes")
    return text


def _members(node: yaml.MappingNode, wrong: Callable[[int, str], None]) -> Iterator[tuple[str, yaml.Node, int]]:
    seen: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            wrong(line, "a name of an option is a text")
        elif key.value in seen:
            wrong(line, f"{_short(key.value)} stands here twice")
        else:
            seen.add(key.value)
            yield key.value, value, line


def _read_entry(row: yaml.Node, number: int, found: ClustersFile) -> None:
    begin = row.start_mark.line + 1
    if not isinstance(row, yaml.MappingNode):
        found.wrong(begin, f"cluster number {number}: is not a mapping with a name and options")
        return
    name = next((_text(value) for key, value in row.value if _text(key) == "name"), "")
    title = f"cluster {name}" if valid_cluster_name(name) else f"cluster number {number}"
    options, unusable, named = cast("Options", {}), set[str](), False

    def wrong(line: int, text: str) -> None:
        found.wrong(line, f"{title}: {text}")

    for key, value, line in _members(row, wrong):
        if key == "name":
            named = True
            if not valid_cluster_name(name):
                wrong(line, "name: use lower-case letters, digits and hyphens, at most 63")
        elif key not in KINDS:
            close = difflib.get_close_matches(key.lower(), ("name", *KINDS), n=1)
            wrong(line, f"{_short(key)} is not an option" + (f": did you mean {close[0]}?" if close else ""))
        elif reason := _read_option(key, value, options):
            unusable.add(key)
            wrong(line, f"{key} {reason}")
    if not named:
        wrong(begin, "has no name")
    elif any(entry.name == name for entry in found.entries):
        wrong(begin, "stands here twice")
    found.entries.append(Entry(name if valid_cluster_name(name) else "", title, options, begin, unusable))


def _text(node: yaml.Node) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _read_option(key: str, node: yaml.Node, options: Options) -> str:
    """Returns what is wrong with the value; empty if nothing is."""
    kind = KINDS[key]
    try:
        value: Any = yaml.SafeLoader("").construct_object(node, deep=True)
    except yaml.YAMLError:
        value = node
    if value is None:
        return ""
    if kind is list and isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    wrong = not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    if wrong or (kind is list and not all(isinstance(each, str) and each for each in value)):
        return f"is not {_IN_WORDS[kind]}"
    if key in _ONE_OF and value not in _ONE_OF[key]:
        return f"is not one of {', '.join(_ONE_OF[key])}"
    if kind is str and key != "ca_pem" and "\n" in value.strip():
        return "has several lines: give a reference or a path, never the content itself"
    if value not in ("", []):
        options[key] = value.strip() if kind is str and key != "ca_pem" else value
    if key == "template" and key in options:
        options[key] = written_template(options[key])
    return ""


def _short(key: str) -> str:
    return repr(key[:40])
