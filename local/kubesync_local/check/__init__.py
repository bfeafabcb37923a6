"""``kubesync cluster check``: everything that has to be right for a cluster, step by step, each with what is wrong in words."""
