"""The shared domain model: plain values and protocols that all packages of kdeclare import."""
