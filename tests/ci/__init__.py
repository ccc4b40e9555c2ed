"""The pieces for GitHub and GitLab: their steps run for real, beside stubs of the two services."""
