"""Files of a proxy: one writer, checked, replaced whole, then loaded by the proxy."""
