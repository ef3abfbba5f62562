"""The compiled inner loops of the workloads room; nothing here opens a file or raises an error."""
