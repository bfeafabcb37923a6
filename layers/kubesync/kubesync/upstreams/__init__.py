"""Named upstreams: composed of Services, other named upstreams and static nodes."""
