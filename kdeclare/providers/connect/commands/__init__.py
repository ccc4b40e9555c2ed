"""The ad hoc commands of Connect, with what they do and print. Entry points lead here; nothing imports it."""
