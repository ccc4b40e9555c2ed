"""Decoders of responses that kafka-python decodes slowly."""
