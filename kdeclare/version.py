"""The version, apart from the package so that reading it imports nothing."""

VERSION = "0.2.0"
