"""The data that kdeclare stores between runs: the interface `StateStore`, stores, locks and journals."""
