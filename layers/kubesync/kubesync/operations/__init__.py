"""What people ask for: full resyncs, and dry runs of them."""
