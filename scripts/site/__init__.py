"""The documentation site. `make docs` builds the site in the folder build/site."""
