"""The parts of a supervisor: run directory files, outputs, processes, control group, and the loop
around one script.

``supervisor.py`` loads every module here under ``python -I -S`` within milliseconds.  So they must
never import other parts of qbatch, nor a large part of the standard library (such as ``json``,
``signal``, ``subprocess``, ``pathlib`` or ``typing``). The executor uses ``files``, ``outputs`` and
``processes`` too.
"""
