"""The HTTP side: operations in the wire format, and faults on demand."""
