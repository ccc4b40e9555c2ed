"""What changes of topics mean for records and consumers: a part of plans that is only shown."""
