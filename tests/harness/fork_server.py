"""Forks `gateway` commands from a process that has imported all of the gateway; `python -m tests.harness.fork_server`.

The import takes most of the processor time of a start, and the tests start hundreds of processes. A fork is a process
like any other: it has its own pid, environment, working directory and streams, and can be frozen and killed.

Standard input is the socket of the requests. Each is the length of a JSON document as four bytes, with the file
descriptors of the new process's outputs and of a pipe, then the document `{words, environment, directory}`. The
server writes two lines to the pipe: the pid, and the return code once the process has ended.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
from typing import Any

from gateway.__main__ import main
from gateway.cli import SECTIONS

#: bytes of a request's length, and file descriptors with it: standard output, standard error and the pipe
LENGTH, DESCRIPTORS = 4, 3
#: imported by commands when they are called
_IMPORTED_LATER = (
    "gateway.foundation.db.service_role",
    "gateway.embedded.up",
    "gateway.web.server.serve",
    "gateway.sandbox.app",
    "workers.main",
)


class _Server:
    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        #: pid → the pipe for the return code
        self._pipes: dict[int, int] = {}

    def until_forked(self) -> bool:
        """Serve requests; true in each forked process, false in the server once the tests have closed the socket."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, self._reap)
        while True:
            head, descriptors, _, _ = socket.recv_fds(self._requests, LENGTH, DESCRIPTORS)
            if not head:
                return False
            request = json.loads(self._requests.recv(int.from_bytes(head), socket.MSG_WAITALL))
            # A process that ends at once is reaped after its pipe is known.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
            pid = os.fork()
            if pid == 0:
                self._become(request, descriptors)
                return True
            stdout, stderr, pipe = descriptors
            os.close(stdout)
            os.close(stderr)
            self._pipes[pid] = pipe
            _write_line(pipe, pid)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def _reap(self, *_: Any) -> None:
        while self._pipes:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            pipe = self._pipes.pop(pid)
            _write_line(pipe, os.waitstatus_to_exitcode(status))
            os.close(pipe)

    def _become(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Give the new process what an exec would give it."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        stdout, stderr, _pipe = descriptors
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, stream in enumerate((nothing, stdout, stderr)):
            os.dup2(stream, number)
        for descriptor in (nothing, *descriptors, *self._pipes.values()):
            os.close(descriptor)
        self._requests.close()
        os.environ.clear()
        os.environ.update(request["environment"])
        time.tzset()
        os.chdir(request["directory"])
        sys.argv = ["gateway", *request["words"]]


def _write_line(pipe: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # the tests have ended without waiting for the process
        os.write(pipe, b"%d\n" % number)


def _import_all() -> None:
    for commands in SECTIONS.values():
        for command in commands:
            importlib.import_module(command.target.partition(":")[0])
    for name in _IMPORTED_LATER:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _import_all()
    requests = socket.socket(fileno=os.dup(0))
    if _Server(requests).until_forked():
        main()
