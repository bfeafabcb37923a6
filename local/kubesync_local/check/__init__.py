"""``kubesync cluster check``: tests what a cluster needs, step by step, and says what is wrong."""
