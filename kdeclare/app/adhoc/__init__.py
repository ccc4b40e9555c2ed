"""What the ad hoc commands of providers have in common: changing something without a manifest."""
