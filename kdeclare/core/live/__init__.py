"""Live state: how it is collected, cached and awaited, and the faults that systems report."""
