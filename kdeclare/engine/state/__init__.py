"""What kdeclare remembers between runs: the port `StateStore`, its adapters, locks and journals."""
