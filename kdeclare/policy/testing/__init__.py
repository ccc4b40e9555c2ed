"""Cases that policy authors write, and putting them before the policies."""
