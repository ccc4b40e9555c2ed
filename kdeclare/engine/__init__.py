"""Planning, execution and state, independent of resource kinds."""
