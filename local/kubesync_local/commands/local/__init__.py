"""Commands that need no AWS account and no cluster: ``demo``, ``local up`` and ``setup``."""
