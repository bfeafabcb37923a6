"""``kubesync cluster``: add, list, show, check, disable, enable and remove clusters."""
