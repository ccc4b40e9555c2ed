"""Tokens for SASL OAUTHBEARER from commands and from installed token providers."""
