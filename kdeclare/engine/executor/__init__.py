"""Execution of plans: expectations, scheduler, journal, recovery and rollback. Never diffs or prompts."""
