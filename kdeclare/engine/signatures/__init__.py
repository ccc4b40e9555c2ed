"""Sign plans, and verify the signatures of plan files."""
