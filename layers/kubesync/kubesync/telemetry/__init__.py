"""What kubesync reports while it runs: metrics, and Events on Services."""
