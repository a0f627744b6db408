"""Become another program that dies with its parent: `parent_death_signal.py PARENT SIGNAL UID:GID|- PROGRAM [ARG…]`.

Run as a file by a bare interpreter, so it imports nothing of ours. A launcher instead of `preexec_fn`, because that may
deadlock in a process with threads.
"""

import ctypes
import os
import sys

#: option of prctl(2): the signal this process gets when its parent dies
PR_SET_PDEATHSIG = 1


def main(parent: str, signal: str, account: str, *program: str) -> None:
    """Change the account, tie the process to its parent, and become the program."""
    if account != "-":
        uid, gid = map(int, account.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # Only after the change of account, which would clear it again. Elsewhere than on Linux there is no such thing:
    # what a killed parent leaves behind is ended at the next start.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal))
    if os.getppid() != int(parent):
        sys.exit("the parent died before the program began")
    os.execv(program[0], program)  # noqa: S606  to become a program is the purpose


if __name__ == "__main__":
    main(*sys.argv[1:])
