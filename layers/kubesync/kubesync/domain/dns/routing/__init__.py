"""Routing policies: their values, how annotations ask for them, and what Route 53 refuses."""
