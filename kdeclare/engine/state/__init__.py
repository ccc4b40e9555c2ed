"""What kdeclare stores between runs: the interface `StateStore`, its implementations, locks and journals."""
