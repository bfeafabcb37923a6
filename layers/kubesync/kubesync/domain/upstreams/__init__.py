"""Upstreams: the nodes behind the ports of Services, and names for several of them."""
