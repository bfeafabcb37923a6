"""Upstreams as they come from the table: read once, polled, or followed through the stream."""
