"""The AWS side: tables, lease and fences, state and claims, upstreams, audit, Route 53, secrets."""
