"""Imports once and forks a process for every command line: importing takes longer than a small run.

Reads one job per line from standard input as JSON: `[arguments, folder]` starts the command line with its output in
`folder/out` and `folder/err` and answers with the process id; `[pid]` waits and answers with the exit status. A third
entry of the first kind holds environment variables; one called TERMINAL names a pseudo terminal that takes the place
of standard input and output.
"""

import fcntl
import json
import os
import signal
import sys
import termios
import traceback

import train_fabric


def child(arguments, folder, variables=()):
    os.environ.update(variables)
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        signal.signal(number, handler)  # a program in the background, or under nohup, hands on that they are ignored
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY), number)
    if "TERMINAL" in os.environ:
        os.setsid()
        terminal = os.open(os.environ["TERMINAL"], os.O_RDWR)
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)  # Ctrl+C is a signal then
        os.dup2(terminal, 0)
        os.dup2(terminal, 1)
    if "--broken-pipe" in arguments:
        arguments.remove("--broken-pipe")
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
    sys.path.append(folder)
    status = 0
    try:
        train_fabric.cli(arguments)
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # Python's own way out takes longer than all the rest


for line in sys.stdin:
    job = json.loads(line)
    if len(job) == 1:
        answer = os.waitstatus_to_exitcode(os.waitpid(job[0], 0)[1])
    else:
        answer = os.fork()
        if answer == 0:
            child(*job)
    print(answer, flush=True)
