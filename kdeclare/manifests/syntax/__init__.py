"""Read YAML as data with source positions: files, nodes, scalars, ``${…}`` references and their limits."""
