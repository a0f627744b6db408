"""Launches a program that gets a signal when its parent dies.

Its arguments are `PARENT SIGNAL UID:GID|- N DIRECTORY… PROGRAM [ARGUMENT…]`. It is run as a file by an interpreter
without site packages, so that it imports no module of the gateway. `preexec_fn` would do the same, but may deadlock in
a process with threads.
"""

import ctypes
import os
import sys

#: option of prctl(2): the signal that this process gets when its parent dies
PR_SET_PDEATHSIG = 1


#: the first file descriptor of the directories that are opened for the program
FIRST_DESCRIPTOR = 100


def main(parent: str, signal: str, user: str, count: str, *rest: str) -> None:
    """Open the directories, change the user, set the parent death signal, and execute the program."""
    directories, program = rest[: int(count)], rest[int(count) :]
    # Opened before the change of user: that user owns them, but may not be allowed to enter the directories above.
    for number, directory in enumerate(directories, FIRST_DESCRIPTOR):
        os.dup2(os.open(directory, os.O_RDONLY | os.O_DIRECTORY), number, inheritable=True)
    if user != "-":
        uid, gid = map(int, user.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # Set after the change of user, which clears it. Only Linux has it; on other systems the next start ends the
    # processes that a killed parent left.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal))
    if os.getppid() != int(parent):
        sys.exit("the parent died before the program began")
    os.execv(program[0], program)  # noqa: S606  replaces this process by the program


if __name__ == "__main__":
    main(*sys.argv[1:])
