"""The months of the Origin 2000, held to the printed table and to what the paper says of the real
ones."""
