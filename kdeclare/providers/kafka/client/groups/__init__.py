"""Requests about groups, to the brokers that coordinate these groups."""
