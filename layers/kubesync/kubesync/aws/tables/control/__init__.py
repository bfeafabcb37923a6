"""Items of the control table: lease, fences, clusters, listeners, inflight items, requests."""
