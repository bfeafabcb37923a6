"""Bytes of an API server to values: lines, events, lists."""
