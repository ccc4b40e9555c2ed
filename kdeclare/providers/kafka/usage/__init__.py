"""Read the producers and readers of topics, and the times of the latest records."""
