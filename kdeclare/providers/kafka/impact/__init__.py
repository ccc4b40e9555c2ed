"""What changes to topics mean for records and consumers: a part of plans that is only shown."""
