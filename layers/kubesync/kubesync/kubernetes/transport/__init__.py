"""HTTP to one API server: requests, connections that can be cut, streams, errors."""
