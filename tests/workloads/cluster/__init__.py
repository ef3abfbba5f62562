"""The generated GPU cluster: its jobs, its hosts and its statistics."""
