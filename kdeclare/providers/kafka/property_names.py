"""The client properties that kdeclare defines in addition to those of Kafka."""

TOKEN_COMMAND_KEY = "kdeclare.token.command"
"""The command that prints a token for SASL OAUTHBEARER."""
TOKEN_PROVIDER_KEY = "kdeclare.token.provider"
"""The name of an installed token provider. Properties that start with this key and a dot are its options."""
