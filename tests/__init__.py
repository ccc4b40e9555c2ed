"""The tests. A package, so that what they share has one name: tests.beds, tests.conftest."""
