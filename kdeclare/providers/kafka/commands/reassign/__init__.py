"""The command ``kdeclare reassign``: kafka-reassign-partitions with a plan, a journal and a rollback."""
