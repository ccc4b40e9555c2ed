"""YAML files as data that knows its places: files, nodes, scalars, ``${…}`` references and their limits."""
