"""``make screenshots``: pictures of what people see, taken by the system's Chromium, for us to look at."""
