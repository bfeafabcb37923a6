"""``kubesync upstream``: named upstreams."""
