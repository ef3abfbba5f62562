"""Sends frames as whoever runs it and prints the replies: ``python asker.py SOCKET``, one JSON
request a line on stdin.

It imports nothing but the standard library: another user may not be able to read ours.
"""

from __future__ import annotations

import json
import socket
import sys


def main(path: str) -> None:
    """Ask and print."""
    for line in sys.stdin:
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(30)
            channel.connect(path)
            body = line.strip().encode()
            channel.sendall(len(body).to_bytes(4, "big") + body)
            data = b""
            while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
                piece = channel.recv(65536)
                if not piece:
                    break
                data += piece
            print(json.dumps(json.loads(data[4:])) if data else "null", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
