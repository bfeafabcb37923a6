"""The session: lease, take-over, control, drain, report."""
