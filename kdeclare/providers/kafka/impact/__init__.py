"""The impact of changes to topics on records and consumers, which kdeclare shows in plans."""
