"""Read YAML files as data with source positions, and resolve ``${…}`` references within their limits."""
