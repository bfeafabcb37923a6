"""States in words that people know. JSON keeps the words that it has."""

from typing import Final

_WORDS: Final = {"closed": "in sync", "applied": "in sync", "open": "pending"}


def state_in_words(state: str) -> str:
    """``in sync``, ``pending``; other states say themselves what they are."""
    return _WORDS.get(state, state)
