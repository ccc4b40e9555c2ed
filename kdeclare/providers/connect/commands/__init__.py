"""The ad hoc commands for Connect and their output. Entry points load this package only when it is needed."""
