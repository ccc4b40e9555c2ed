"""The observed effects of a run on records and brokers, next to the predictions of its plan."""
