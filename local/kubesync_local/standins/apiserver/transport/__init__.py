"""The HTTP side: connections, TLS, sign-in, faults, and a log of all requests."""
