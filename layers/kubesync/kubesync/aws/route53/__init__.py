"""Route 53: the port to it, its adapter, the journal, rate limits, other accounts."""
