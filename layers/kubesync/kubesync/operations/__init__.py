"""What people ask for: resync, recovery, removal."""
