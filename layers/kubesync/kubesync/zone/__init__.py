"""One hosted zone: its queue, its journal, one batch at a time, refusals and conflict checks."""
