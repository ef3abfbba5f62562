"""The documents, held to the program: every block of code in them is typed, read or decoded."""
