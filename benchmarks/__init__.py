"""How fast kdeclare is beside the bare requests that its work takes; see README.md."""
