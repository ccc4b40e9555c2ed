"""Resource kinds: what each can say, how it is compared, and what changes it."""
