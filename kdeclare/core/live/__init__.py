"""How kdeclare reads live state and waits for it, and the faults that systems report."""
