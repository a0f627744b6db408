"""Become another program that dies with its parent: `… PARENT SIGNAL UID:GID|- N DIRECTORY… PROGRAM [ARGUMENT…]`.

Run as a file by a bare interpreter, so it imports nothing of the gateway. A launcher instead of `preexec_fn`, because
that may deadlock in a process with threads.
"""

import ctypes
import os
import sys

#: option of prctl(2): the signal this process gets when its parent dies
PR_SET_PDEATHSIG = 1


#: the first of the descriptors under which a program finds the directories that were opened for it
FIRST_DESCRIPTOR = 100


def main(parent: str, signal: str, user: str, count: str, *rest: str) -> None:
    """Open the directories, change the user, tie the process to its parent, and become the program."""
    directories, program = rest[: int(count)], rest[int(count) :]
    # Opened as ourselves: that user may use them, though perhaps not pass through what lies above them.
    for number, directory in enumerate(directories, FIRST_DESCRIPTOR):
        os.dup2(os.open(directory, os.O_RDONLY | os.O_DIRECTORY), number, inheritable=True)
    if user != "-":
        uid, gid = map(int, user.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # Only after the change of user, which would clear it again. Elsewhere than on Linux there is no such thing:
    # what a killed parent leaves behind is ended at the next start.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal))
    if os.getppid() != int(parent):
        sys.exit("the parent died before the program began")
    os.execv(program[0], program)  # noqa: S606  to become a program is the purpose


if __name__ == "__main__":
    main(*sys.argv[1:])
