r"""Documents as YAML: the same values as JSON, and no character that a terminal obeys.

Text with such a character is written in double quotes. There YAML has the same escapes (``\x1b``, ``\u202e``) that ``escaping`` writes,
so every parser reads the text as it was. Text that some parser would read as a number or a truth value is quoted too.
"""

import re
from typing import Any, Final

import yaml

from kubesync_local.terminal.escaping import escaped

# YAML 1.2 reads more of these than PyYAML, which follows 1.1: 1e3, 0o17. Others read y and n as truth values.
_OTHER_TYPE: Final = re.compile(
    r"[-+]?[.\d][\d._]*(?:[eE][-+]?\d+)?|0[xob][\da-fA-F_]+|[-+]?\.(?:inf|nan)|y|n|yes|no|on|off|true|false|null|~",
    re.IGNORECASE,
)


class _Dumper(yaml.SafeDumper):
    """Writes equal objects twice, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML calls it so
        return True

    def text(self, value: str) -> yaml.ScalarNode:
        quoted = escaped(value) != value or "\n" in value or _OTHER_TYPE.fullmatch(value) is not None
        return self.represent_scalar("tag:yaml.org,2002:str", value, style='"' if quoted else None)


_Dumper.add_representer(str, _Dumper.text)


def as_yaml(document: object) -> str:
    """One YAML document, in the order of its keys."""
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return escaped(str(text))
