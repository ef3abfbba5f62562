"""Real clients of PBS, unmodified, each from an environment of its own, against a private server
with real processes."""
