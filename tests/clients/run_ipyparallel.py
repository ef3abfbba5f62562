"""ipyparallel: three engines as one job array (``-t``: Torque) compute, and have ended when the
cluster stops."""

import subprocess
import time

import ipyparallel


def table() -> str:
    return subprocess.run(["qstat", "-t"], check=True, capture_output=True, text=True).stdout


def main() -> None:
    cluster = ipyparallel.Cluster(engines="pbs", n=3, controller_ip="127.0.0.1", cluster_id="test")
    cluster.start_cluster_sync()
    client = cluster.connect_client_sync()
    client.wait_for_engines(3, timeout=60)
    indices = client[:].apply_sync(lambda: __import__("os").environ["PBS_ARRAYID"])
    assert sorted(indices) == ["1", "2", "3"], indices
    assert sum(client[:].map_sync(lambda number: number * number, range(10))) == 285
    assert table().count("ipengine") == 4, table()
    client.close()
    cluster.stop_cluster_sync()
    deadline = time.monotonic() + 30
    while any(row.split()[4] != "C" for row in table().splitlines()[2:]):
        assert time.monotonic() < deadline, table()
        time.sleep(0.1)
    print("done", indices)


if __name__ == "__main__":
    main()
