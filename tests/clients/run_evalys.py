"""Runs in evalys' own environment: reads ``jobs.csv``, draws it, prints what evalys computes from
it as JSON."""

import json
import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from evalys.jobset import JobSet
from evalys.metrics import cumulative_waiting_time
from evalys.visu.gantt import plot_gantt

path, procs, picture = sys.argv[1:]
jobs = JobSet.from_csv(path, resource_bounds=(0, int(procs) - 1))
free = jobs.free_intervals()
plot_gantt(jobs, title="from qbatch")
plt.savefig(picture)
jobs.plot(with_details=True)
print(
    json.dumps(
        {
            "jobs": len(jobs.df),
            "processors": int(jobs.MaxProcs),
            "allocated": [int(each) for each in jobs.df.proc_alloc],
            "wait_mean": float(jobs.df.waiting_time.mean()),
            "wait_sum": float(cumulative_waiting_time(jobs.df).iloc[-1]),
            "turnaround_mean": float(jobs.df.turnaround_time.mean()),
            "stretch_mean": float(jobs.df.stretch.mean()),
            "busy_mean": float(jobs.mean_utilisation()),
            "busy_max": int(jobs.utilisation.load.max()),
            "queue_area": float(jobs.queue.area.sum()),
            "least_free": min(len(each) for each in free.free_itvs),
        }
    )
)
