"""Groups of consumers: their offsets, the reset of these offsets, and the operations on groups."""
