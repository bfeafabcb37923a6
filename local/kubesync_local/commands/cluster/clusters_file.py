"""The file of ``kubesync cluster apply``: a YAML document with a list ``clusters``, each with a name and options (see ``options``).

    clusters:
      - name: prod
        server: https://10.20.30.40:6443
        token: secretsmanager:kubesync/prod
        domain: prod.example.com
        zones: [Z0123456789ABCDEFGHIJ]
        ttl: 60

It is read with PyYAML's safe loader. Messages name the line and never quote a value: it may be a secret that somebody put there.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import yaml

from kubesync.aws.tables.control.clusters import valid_cluster_name
from kubesync.domain.errors import UsageError
from kubesync_local.commands.cluster.options import KINDS, Options

_MOST_BYTES: Final = 4_000_000
_IN_WORDS: Final = {str: "a text", bool: "true or false", int: "a whole number", list: "a list of texts"}
_ONE_OF: Final = {
    "endpoints_source": ("auto", "endpoints", "endpointslices"),
    "policy": ("sync", "upsert-only", "create-only"),
    "on_delete": ("remove", "retain"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One cluster of the file. ``line``: where it begins, from 1."""

    name: str
    options: Options
    line: int


@dataclass(slots=True)
class ClustersFile:
    """``problems``: what is wrong, one line each, with the line of the file."""

    path: str
    entries: list[Entry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def wrong(self, line: int, text: str) -> None:
        """Note a problem."""
        self.problems.append(f"{self.path}:{line}: {text}")


def read_clusters_file(path: str) -> ClustersFile:
    """Read and check the form of a file; ``-``: standard input. Raises UsageError if it cannot be read at all."""
    shown = "standard input" if path == "-" else path
    found = ClustersFile(shown)
    try:
        root = yaml.SafeLoader(_text_of(path, shown)).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UsageError(f"{shown}{'' if mark is None else f':{mark.line + 1}'}: is not YAML") from None
    except yaml.YAMLError:
        raise UsageError(f"{shown}: is not YAML") from None
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(f"{shown}: has no list `clusters`")
    rows: yaml.Node | None = None
    for key, value, line in _members(root, found):
        if key == "clusters":
            rows = value
        else:
            found.wrong(line, f"{key!r} is not known here: only `clusters`")
    if not isinstance(rows, yaml.SequenceNode):
        found.wrong(root.start_mark.line + 1, "has no list `clusters`")
        return found
    for row in rows.value:
        _read_entry(row, found)
    return found


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


def _members(node: yaml.MappingNode, found: ClustersFile) -> Iterator[tuple[str, yaml.Node, int]]:
    seen: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            found.wrong(line, "a name of an option is a text")
        elif key.value in seen:
            found.wrong(line, f"{_short(key.value)} stands here twice")
        else:
            seen.add(key.value)
            yield key.value, value, line


def _read_entry(row: yaml.Node, found: ClustersFile) -> None:
    begin = row.start_mark.line + 1
    if not isinstance(row, yaml.MappingNode):
        found.wrong(begin, "a cluster is a mapping with a name and options")
        return
    name, options = "", cast("Options", {})
    for key, value, line in _members(row, found):
        if key == "name":
            name = value.value if isinstance(value, yaml.ScalarNode) else ""
            if not valid_cluster_name(name):
                found.wrong(line, "name: use lower-case letters, digits and hyphens, at most 63")
        elif key not in KINDS:
            close = difflib.get_close_matches(key.lower(), ("name", *KINDS), n=1)
            found.wrong(line, f"{_short(key)} is not an option" + (f": did you mean {close[0]}?" if close else ""))
        else:
            _read_option(key, value, line, options, found)
    if not name:
        found.wrong(begin, "a cluster has no name")
    elif any(entry.name == name for entry in found.entries):
        found.wrong(begin, f"cluster {name} stands here twice")
    found.entries.append(Entry(name, options, begin))


def _read_option(key: str, node: yaml.Node, line: int, options: Options, found: ClustersFile) -> None:
    kind = KINDS[key]
    try:
        value: Any = yaml.SafeLoader("").construct_object(node, deep=True)
    except yaml.YAMLError:
        value = node
    if value is None:
        return
    if kind is list and isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    wrong = not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    if wrong or (kind is list and not all(isinstance(each, str) and each for each in value)):
        found.wrong(line, f"{key} is not {_IN_WORDS[kind]}")
    elif key in _ONE_OF and value not in _ONE_OF[key]:
        found.wrong(line, f"{key} is not one of {', '.join(_ONE_OF[key])}")
    elif kind is str and key != "ca_pem" and "\n" in value.strip():
        found.wrong(line, f"{key} has several lines: give a reference or a path, never the content itself")
    elif value not in ("", []):
        options[key] = value.strip() if kind is str and key != "ca_pem" else value


def _short(key: str) -> str:
    return repr(key[:40])
