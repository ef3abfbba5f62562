"""``python -m qbatch`` is the same as the ``qbatch`` command."""

from qbatch.cli.main import main

if __name__ == "__main__":
    main()
