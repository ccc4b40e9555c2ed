"""HTTP endpoints, for providers of systems that have a REST API. This package is not a provider."""
