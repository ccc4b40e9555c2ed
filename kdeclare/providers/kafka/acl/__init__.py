"""Access control lists: bindings, which allow or deny principals to use resources of a cluster."""
