"""What a site's own files say: read into the tables of a machine file
(docs/spec/production.md, section 7)."""
