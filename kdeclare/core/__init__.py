"""The vocabulary as values. Imports nothing but the standard library."""
