"""What helps against a foreign record set that is in the way, for people. ``recover`` takes over only one that is exactly as wanted."""

import re
from typing import Final

# Sessions store these words of ``why_foreign``. In the tables they stay as they are: other words would be a change of each such key.
_STORED: Final = re.compile(
    r" stands there and is not ours (\(.*?\)): (?:make both equal and )?take it over \(`kubesync recover`\), remove it, or choose "
    "another name"
)
_SHOWN: Final = (
    r" already exists \1 and was not created by kubesync: delete it, choose another name, or make both equal and adopt it "
    "(`kubesync recover`)"
)
# Of other sentences of sessions about what is in the way.
_WORDS: Final = ((" stands there (", " already exists ("), ("remove what is nobody's", "delete what nobody owns"))

OTHER_FORM: Final = (
    "change the Service or the record set so that both are equal, delete the foreign one, or leave it as it is"
)
"""What a person can do about one in another form: ``recover`` does not take it over."""


def in_the_way_for_people(reason: str) -> str:
    """A stored or reported reason, with advice that is true whatever the form of the foreign record set is."""
    shown = _STORED.sub(_SHOWN, reason)
    for stored, said in _WORDS:
        shown = shown.replace(stored, said)
    return shown
