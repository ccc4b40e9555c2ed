"""The effects of a run on records and brokers, compared with the predictions of the plan."""
