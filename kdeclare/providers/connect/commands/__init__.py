"""The ad hoc commands for Connect and their output. This package is only loaded through entry points."""
