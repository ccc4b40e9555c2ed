"""Running a plan: expectations, scheduler, journal, recovery, rollback. Never diffs, never asks."""
