"""``kubesync lint``: what a manifest leads to."""
