"""The reading of live state, and the faults that systems report."""
