"""Exit codes, and error messages: one line on stderr that says how to fix the error."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import click

from gateway import errors
from gateway.cli.causes import cause_of, is_about_settings
from gateway.cli.words import printable
from gateway.embedded import UNUSABLE_SETTINGS
from gateway.errors import GatewayError


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    #: the gateway or the application refused, or failed
    REFUSED = 1
    #: invalid command line, a setting that cannot be used, or a missing extra
    USAGE = UNUSABLE_SETTINGS
    UNAUTHORIZED = 3
    NOT_FOUND = 4
    #: rate limited or unavailable: the same command may work later
    LATER = 5
    #: the job failed, was canceled, or its outcome is unknown
    JOB = 6
    #: stopped by Ctrl-C
    INTERRUPTED = 130
    #: stdout was closed by its reader
    BROKEN_PIPE = 141


#: a request that lists objects, as the gateway's errors name it
_LISTING = re.compile(
    r"GET /api/v1/(?:integrations/)?(connectors|workspaces|jobs|schedules|webhooks|grants)(?= lists )"
)

EXIT_CODES = """\b
Exit codes:
  0    done
  1    the gateway or the application refused, or failed
  2    invalid command line, a setting that cannot be used, or a missing extra
  3    not authorized: the gateway or the application refused the credentials
  4    not found
  5    rate limited or unavailable; try again later
  6    the job failed, was canceled, or its outcome is unknown
  130  interrupted
"""


def exit_code(error: GatewayError) -> Exit:
    """The exit code for an error; an error that ended a job has the code of jobs."""
    if "job_id" in error.extra:
        return Exit.JOB
    match error:
        case errors.Unauthorized() | errors.Forbidden() | errors.ReauthorizationRequired():
            return Exit.UNAUTHORIZED
        case errors.NotFound():
            return Exit.NOT_FOUND
        case errors.RateLimited() | errors.Unavailable():
            return Exit.LATER
        case _:
            return Exit.REFUSED


def one_line(error: GatewayError) -> str:
    """The message of an error with all faults and hints, without line breaks and control characters."""
    faults = [fault.message for fault in error.faults]
    message = "; ".join(faults) if faults else error.detail
    return printable(" ".join([_LISTING.sub(_listing_command, message), *_hints(error)]))


def _listing_command(request: re.Match[str]) -> str:
    """The command that sends this request."""
    return f"`gateway {request[1]}{'' if request[1] == 'workspaces' else ' list'}`"


def _hints(error: GatewayError) -> Iterator[str]:
    if error.upstream is not None and error.upstream.message and error.upstream.message not in error.detail:
        yield f"(the application says: {error.upstream.message})"
    if isinstance(error, errors.ReauthorizationRequired):
        yield "(connect it again: gateway connect KIND --renew CONNECTOR)"
    if error.retry_after is not None:
        yield f"(try again in {error.retry_after} s)"
    if "job_id" in error.extra:
        yield f"(job {error.extra['job_id']})"
    elif error.extra.get("http_status", 0) >= 500 and "request_id" in error.extra:
        yield f"(request {error.extra['request_id']})"


@contextmanager
def errors_as_exit_codes() -> Iterator[None]:
    """Print errors of the block as one line, and exit with their code; also for interrupts and broken pipes."""
    try:
        yield
    except GatewayError as error:
        complain(one_line(error))
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        # The interpreter flushes stdout at exit; /dev/null prevents a second BrokenPipeError.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.BROKEN_PIPE)
    except click.exceptions.Abort as abort:
        if not isinstance(abort.__context__, KeyboardInterrupt):
            raise
        complain("interrupted")
        sys.exit(Exit.INTERRUPTED)
    except (click.ClickException, click.exceptions.Exit):
        raise
    except Exception as error:
        message = cause_of(error)
        if message is None:
            raise
        complain(printable(message))
        sys.exit(Exit.USAGE if is_about_settings(error) else Exit.REFUSED)


def complain(line: str) -> None:
    """Print an error line on stderr; red on a terminal."""
    if sys.stderr.isatty():
        _print(("Error: ", "bold red"), line)
    else:
        print(f"Error: {line}", file=sys.stderr)


def note(line: str) -> None:
    """Print a remark on stderr, so that stdout holds results only."""
    _print((printable(line), "dim"))


def _print(*parts: str | tuple[str, str]) -> None:
    """Print texts, each alone or with its style, on stderr."""
    # The import takes a third of the start of a command, and few commands print with styles.
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True, soft_wrap=True).print(Text.assemble(*parts))
