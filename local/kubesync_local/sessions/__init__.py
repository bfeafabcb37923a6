"""A session that a command runs: its progress on a terminal, its end by a signal, and a look that changes nothing."""
