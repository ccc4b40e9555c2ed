"""``kdeclare reassign`` works like kafka-reassign-partitions and adds a plan, a journal and rollback."""
