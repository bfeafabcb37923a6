"""A source that only tests know: one file of models and one of rules. Importing this package registers it."""

from toy import models, rules

__all__ = ["models", "rules"]
