"""Planning, execution and state: what kdeclare does with resources of any kind."""
