"""What runs at the same time as what: threads and locks. Knows nothing else of kubesync."""
