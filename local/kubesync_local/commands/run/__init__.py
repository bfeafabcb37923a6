"""Commands that run a session: ``session``, ``resync`` and ``recover``."""
