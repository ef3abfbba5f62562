"""What a supervisor is made of: run directory files, outputs, processes, control group, and the loop around one script.

Every module here is loaded by ``supervisor.py`` under ``python -I -S`` within milliseconds, so what must never come in:
anything of qbatch outside this folder, and any part of the standard library that is not small (``json``, ``signal``,
``subprocess``, ``pathlib``, ``typing`` are not).  The executor uses ``files``, ``processes`` and ``leaf`` too.
"""
