"""Kubeconfig files, merged as kubectl merges them.

https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/#merging-kubeconfig-files

what                               which one counts
current-context                    of the first file that sets it
a context, cluster or user         the whole entry of the first file that has this name; nothing is mixed
a relative path in an entry        is relative to the file of the entry
a file of a list that is missing   is left out; a single file must exist
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeGuard

import yaml

from kubesync.domain.errors import UsageError

_DEFAULT: Final = "~/.kube/config"


@dataclass(frozen=True, slots=True)
class Entry:
    """A context, cluster or user, and the file that it stands in."""

    file: Path
    value: Mapping[str, Any]

    def text(self, key: str, where: str) -> str:
        """A value that must be there. Raises UsageError."""
        value = self.value.get(key)
        if not isinstance(value, str) or not value:
            raise UsageError(f"{self.file}: {where} has no {key}")
        return value

    def path(self, named: object) -> Path:
        """A path of this entry."""
        return self.file.parent / Path(str(named)).expanduser()


def usual_files(environment: Mapping[str, str]) -> str:
    """The files that kubectl reads when none is named."""
    return environment.get("KUBECONFIG") or _DEFAULT


def listed(given: str) -> list[Path]:
    """The absolute paths of a file, or of a list of files as in ``$KUBECONFIG``, each once."""
    whole = Path(given).expanduser()
    names = [whole] if whole.exists() else [Path(name).expanduser() for name in given.split(os.pathsep) if name]
    return list(dict.fromkeys(Path(os.path.abspath(name)) for name in names))  # noqa: PTH100 - links stay as they are


class KubeconfigFiles:
    """The files of a list, as one."""

    def __init__(self, given: str) -> None:
        """Raises UsageError: a file cannot be read, or none of them is there."""
        paths = listed(given)
        self._configs = {path: config for path in paths if (config := _load(path, optional=len(paths) > 1)) is not None}
        self.name = os.pathsep.join(map(str, paths))
        if not self._configs:
            raise UsageError(f"{self.name or 'the kubeconfig'}: none of these files exists")

    def context_name(self, given: str | None) -> str:
        """The context that is asked for, or else the current one. Raises UsageError: there is none."""
        names = [given, *(config.get("current-context") for config in self._configs.values())]
        name = next((name for name in names if isinstance(name, str) and name), None)
        if name is None:
            known = ", ".join(sorted({str(entry.get("name")) for _, entry in self._entries("contexts")}))
            raise UsageError(f"{self.name}: has no current-context: name one with --context; it has: {known or 'none'}")
        return name

    def entry(self, section: str, kind: str, name: str) -> Entry:
        """The first entry of this name. Raises UsageError: there is none, or it is empty."""
        known = set()
        for file, entry in self._entries(section):
            if entry.get("name") == name:
                value = entry.get(kind)
                if isinstance(value, Mapping):
                    return Entry(file, value)
                raise UsageError(f"{file}: {kind} {name!r} is empty")
            known.add(str(entry.get("name")))
        if not any(_is_list(config.get(section)) for config in self._configs.values()):
            raise UsageError(f"{self.name}: has no {section}")
        raise UsageError(f"{self.name}: has no {kind} {name!r}; it has: {', '.join(sorted(known)) or 'none'}")

    def _entries(self, section: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        for file, config in self._configs.items():
            entries = config.get(section)
            for entry in list(entries) if _is_list(entries) else ():
                if isinstance(entry, Mapping):
                    yield file, entry


def _is_list(entries: object) -> TypeGuard[Sequence[object]]:
    return isinstance(entries, Sequence) and not isinstance(entries, str)


def _load(file: Path, *, optional: bool) -> Mapping[str, Any] | None:
    try:
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if optional:
            return None
        raise UsageError(f"{file}: {error.strerror}") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or type(error).__name__}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UsageError(f"{file} is not YAML") from None  # YAML's own message quotes the file
    if config is None and optional:  # an empty file adds nothing
        return {}
    if not isinstance(config, Mapping):
        raise UsageError(f"{file} is not a kubeconfig")
    return config
