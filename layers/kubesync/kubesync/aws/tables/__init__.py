"""The items of the tables, one file for each kind: keys, claims, upstreams, audit. ``control`` holds those of the control table."""
