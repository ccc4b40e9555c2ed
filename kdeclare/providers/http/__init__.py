"""HTTP endpoints, for the providers of systems with a REST API. This package is not a provider."""
