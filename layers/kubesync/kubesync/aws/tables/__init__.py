"""What stands in the tables, one file for each kind of item: keys, claims, upstreams, audit. ``control`` holds those of the control table."""
