"""Scripts that are run by developers or by ``make``."""
