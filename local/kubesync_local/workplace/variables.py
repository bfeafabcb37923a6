"""Variables of the environment that look like settings and are none."""

from collections.abc import Iterable
from typing import Final

from kubesync.settings import Settings

_PREFIX: Final = "KUBESYNC_"
LOCAL: Final = ("KUBESYNC_LOG_LEVEL", "KUBESYNC_DEBUG")
"""What only the command reads; see docs/configuration.md."""
_OF_TESTS: Final = ("KUBESYNC_TEST_", "KUBESYNC_ARTEFACT")
# A reference such as env:KUBESYNC_PROD_TOKEN names a variable of the person's own.
_OF_SECRETS: Final = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CERT", "CERTIFICATE", "CA", "PEM")


def unknown_variables(names: Iterable[str]) -> str:
    """One line that names variables which no setting has, each with the nearest one; empty: there is none."""
    known = [*(_PREFIX + name.upper() for name in Settings.model_fields), *LOCAL]
    found = []
    for name in sorted(names):
        if not name.startswith(_PREFIX) or name in known or name.startswith(_OF_TESTS):
            continue
        import difflib  # only now: most environments have no such variable

        close = difflib.get_close_matches(name[:200], known, n=1, cutoff=0.8)
        if close or not name.endswith(_OF_SECRETS):
            found.append(f"{name[:200]}{f' (did you mean {close[0]}?)' if close else ''}")
    if not found:
        return ""
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return f"warning: no setting has the name {', '.join(found[:5])}{more}; docs/configuration.md lists all"
