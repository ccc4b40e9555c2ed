"""What the changes of a run did to records and brokers, beside what its plan predicted."""
