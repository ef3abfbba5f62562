"""What a real OpenPBS answers, as a table that anybody can read, and qbatch held to it.

``answers.json``: scripts that were typed at OpenPBS 23.06 with its exit codes, stdout and stderr.
``differences.toml``: where qbatch answers otherwise on purpose, with the reasons.  ``python -m
tests.cli.pbs.openpbs`` records the answers anew where an OpenPBS is installed.
"""
