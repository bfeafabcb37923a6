"""The session: listeners, reconciler, committer, full resync and report."""
