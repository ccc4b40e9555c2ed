"""Implementations of storage for shared states. The scheme of a state's URL selects one of them."""
