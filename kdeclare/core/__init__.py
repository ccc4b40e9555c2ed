"""The shared domain model: plain values and protocols that all other packages import."""
