"""The attributes that a user gives to a job, in one table.

``qsub`` with its directives and ``-W``, ``qalter``, ``qstat -f`` and ``qselect`` use the table.
The server reads from it which attributes of a running job may be changed.  Of a waiting job,
``qalter`` can change the fields of :class:`~qbatch.wire.requests.Changes`.
"""

from __future__ import annotations

from typing import NamedTuple


class JobAttribute(NamedTuple):
    """One attribute.

    ``name``: as ``-W`` takes it and ``qstat -f`` shows it.  ``field``: the field of a
    specification, of changes and of a record; if a specification has no such field, the key in its
    ``extra``.  ``letter``: the option that sets it too, with the name of its ``argument`` and its
    ``meaning`` (if it is the same for both commands).  ``is_list``: its value has commas.
    ``while_running``: it may be changed while the job runs.
    """

    name: str
    field: str
    letter: str = ""
    argument: str = ""
    meaning: str = ""
    is_list: bool = False
    while_running: bool = False


JOB_ATTRIBUTES = (
    JobAttribute(
        "Account_Name",
        "account",
        "A",
        "account_string",
        "A text for the accounting.",
        while_running=True,
    ),
    JobAttribute(
        "Checkpoint",
        "checkpoint",
        "c",
        "interval",
        "Checkpointing: n, s, c, w, c=minutes, w=minutes or u; kept and shown.",
    ),
    JobAttribute(
        "Error_Path",
        "error",
        "e",
        "path",
        (
            "The file for standard error, relative to the directory of the submission; a directory "
            "is "
            "taken too."
        ),
        while_running=True,
    ),
    JobAttribute(
        "Execution_Time",
        "not_before",
        "a",
        "date_time",
        "The job may start from then on: [[CC]YY]MMDDhhmm[.SS].",
    ),
    JobAttribute("Hold_Types", "hold", "h"),
    JobAttribute(
        "Job_Name", "name", "N", "name", "The name of the job; without it that of the script."
    ),
    JobAttribute(
        "Join_Path",
        "join",
        "j",
        "join",
        (
            "Write both streams into one file: oe into that of output, eo into that of error, n "
            "into "
            "two."
        ),
    ),
    JobAttribute(
        "Keep_Files", "keep", "k", "keep", "Keep files on the host: letters of o, e, d, or n."
    ),
    JobAttribute(
        "Mail_Points",
        "mail_points",
        "m",
        "mail_events",
        "When to send mail: letters of a (abort), b (begin), e (end), j (each subjob), or n.",
        while_running=True,
    ),
    JobAttribute(
        "Mail_Users",
        "mail_users",
        "M",
        "user_list",
        "The users that get mail.",
        is_list=True,
        while_running=True,
    ),
    JobAttribute(
        "Output_Path",
        "output",
        "o",
        "path",
        "The file for standard output, as -e.",
        while_running=True,
    ),
    JobAttribute(
        "Priority", "priority", "p", "priority", "The user's priority, from -1024 to 1023."
    ),
    JobAttribute(
        "Remove_Files", "remove", "R", "o|e|oe", "Remove these files if the job ends well."
    ),
    JobAttribute(
        "Rerunable",
        "is_rerunnable",
        "r",
        "y|n",
        "Whether the job may run again from its beginning.",
        while_running=True,
    ),
    JobAttribute(
        "Shell_Path_List",
        "shell",
        "S",
        "path_list",
        "The shell that runs the script.",
        is_list=True,
    ),
    JobAttribute(
        "User_List",
        "user_list",
        "u",
        "user_list",
        "The user as which the job runs; it must be the user who submits.",
        is_list=True,
    ),
    JobAttribute(
        "Variable_List",
        "variables",
        "v",
        "variable_list",
        "Variables of the job's environment: A,B=x,C='x,y'.",
        is_list=True,
    ),
    JobAttribute("array_indices_submitted", "array", "J"),
    JobAttribute(
        "project", "project", "P", "project", "The project of the job.", while_running=True
    ),
    JobAttribute("block", "is_blocking"),
    JobAttribute("depend", "depend", is_list=True),
    JobAttribute("group_list", "group_list", is_list=True, while_running=True),
    JobAttribute("interactive", "interactive"),
    JobAttribute("max_run_subjobs", "slot_limit", while_running=True),
    JobAttribute("release_nodes_on_stageout", "release_nodes_on_stageout"),
    JobAttribute("run_count", "run_count"),
    JobAttribute("sandbox", "sandbox"),
    JobAttribute("stagein", "stagein", is_list=True),
    JobAttribute("stageout", "stageout", is_list=True),
    JobAttribute("tolerate_node_failures", "tolerate_node_failures"),
    JobAttribute("umask", "umask"),
)
"""All attributes; those that only ``-W`` sets come last."""

ORDER = [
    "Job_Name",
    "Job_Owner",
    "resources_used",
    "job_state",
    "queue",
    "server",
    "Account_Name",
    "Checkpoint",
    "ctime",
    "depend",
    "Error_Path",
    "exec_host",
    "exec_vnode",
    "Execution_Time",
    "group_list",
    "Hold_Types",
    "interactive",
    "Join_Path",
    "Keep_Files",
    "Mail_Points",
    "Mail_Users",
    "mtime",
    "Output_Path",
    "Priority",
    "qtime",
    "Remove_Files",
    "Rerunable",
    "Resource_List",
    "schedselect",
    "stime",
    "start_time",
    "obittime",
    "comp_time",
    "session_id",
    "Shell_Path_List",
    "sandbox",
    "jobdir",
    "stagein",
    "stageout",
    "substate",
    "User_List",
    "Variable_List",
    "comment",
    "etime",
    "umask",
    "block",
    "run_count",
    "eligible_time",
    "Stageout_status",
    "Exit_status",
    "exit_status",
    "Submit_arguments",
    "submit_args",
    "executable",
    "argument_list",
    "array",
    "array_id",
    "array_index",
    "array_state_count",
    "array_indices_submitted",
    "array_indices_remaining",
    "estimated",
    "history_timestamp",
    "project",
    "release_nodes_on_stageout",
    "tolerate_node_failures",
    "Submit_Host",
    "max_run_subjobs",
]
"""The attributes of a job in the order in which OpenPBS 23.06 shows them (master_job_attr_def.xml);
others come last."""

PLACE_OF = {name: place for place, name in enumerate(ORDER)}

BY_LETTER = {attribute.letter: attribute for attribute in JOB_ATTRIBUTES if attribute.letter}
BY_NAME = {attribute.name: attribute for attribute in JOB_ATTRIBUTES}
