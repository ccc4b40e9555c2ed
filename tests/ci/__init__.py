"""The CI integrations for GitHub and GitLab: real steps, with stubs of the two services."""
