"""Events: one feed for each organization, and the webhooks that deliver it."""
