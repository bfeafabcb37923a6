"""API objects: their types, shapes, stored versions, and how they look on the wire."""
