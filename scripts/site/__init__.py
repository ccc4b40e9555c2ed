"""The documentation site; `make docs` builds it into build/site."""
