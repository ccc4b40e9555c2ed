"""Plan a fleet, and apply its plans in waves."""
