"""Threads for calls that block, such as reading a file, shared by organizations."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple, ParamSpec, TypeVar

from gateway.foundation.aio.turns import computing_for

P = ParamSpec("P")
R = TypeVar("R")

#: threads of a process for its calls that block
_THREADS = 16


class _Submitted(NamedTuple):
    future: "Future[Any]"
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]


class FairThreads(ThreadPoolExecutor):
    """Threads: a holder gets at most half of those that the others leave, and the holders that wait take turns.

    The holder is that of the task that submits a call: see `compute_for`.
    """

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self._left = threads
        self._held: Counter[Hashable] = Counter()
        #: holder → its waiting calls; the first holder that may have a thread is next
        self._waiting: dict[Hashable, deque[_Submitted]] = {}
        #: calls end in threads
        self._lock = Lock()

    def submit(self, function: Callable[P, R], /, *arguments: P.args, **options: P.kwargs) -> "Future[R]":
        """Call the function in a thread, when the holder of this task may have one."""
        future: Future[R] = Future()
        with self._lock:
            calls = self._waiting.setdefault(computing_for(), deque())
            calls.append(_Submitted(future, function, arguments, options))
            self._begin()
        return future

    def _begin(self) -> None:
        """Begin the waiting calls for which there are threads."""
        while following := list(islice(filter(self._may_take, self._waiting), 1)):
            (holder,) = following
            calls = self._waiting.pop(holder)
            call = calls.popleft()
            if calls:
                self._waiting[holder] = calls
            if call.future.set_running_or_notify_cancel():
                super().submit(self._called, holder, call)
                self._left -= 1
                self._held[holder] += 1

    def _may_take(self, holder: Hashable) -> bool:
        held = self._held[holder]
        return held < max(1, (self._left + held) // 2) and self._left > 0

    def _called(self, holder: Hashable, call: _Submitted) -> None:
        try:
            call.future.set_result(call.function(*call.arguments, **call.options))
        except BaseException as error:  # it is the caller's
            call.future.set_exception(error)
        with self._lock:
            self._left += 1
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]
            self._begin()


def share_threads() -> None:
    """Let `asyncio.to_thread` share its threads by holder in this event loop."""
    asyncio.get_running_loop().set_default_executor(FairThreads(_THREADS, "gateway"))
