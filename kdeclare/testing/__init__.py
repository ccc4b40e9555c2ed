"""For tests of providers: the engine without files, faults, and the contract of providers as a suite."""
