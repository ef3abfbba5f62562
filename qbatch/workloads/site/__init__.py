"""What a site's own files say: read into the tables of a machine file
(docs/spec/production.md, section 7).

The package never writes a file and never guesses: what it does not use it names with its line.
"""
