"""The environments of a project: which one is chosen, and what it adds to manifests or leaves out."""
