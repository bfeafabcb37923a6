"""All causes."""

from harness.causes import of_clusters, of_sessions, of_zones
from harness.causes.cause import CAUSES, Cause

__all__ = ["CAUSES", "Cause", "of_clusters", "of_sessions", "of_zones"]
