"""What kubesync reports while it runs: metrics."""
