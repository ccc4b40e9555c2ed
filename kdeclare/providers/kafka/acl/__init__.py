"""Access control lists: bindings that allow or deny principals access to the resources of a cluster."""
