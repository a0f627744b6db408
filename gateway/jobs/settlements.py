"""The audit entry at the end of a job: inserted by the statement that ends it."""

from uuid import UUID

from gateway.access.audit.entry import ONCE, approved_by
from gateway.contract.kinds import Effect
from gateway.jobs.model import EXPORT_TASK, OPERATION_TASK, JobSummary, NewJob

#: what `settling` reads of a job
SETTLED = """
    jobs.id, jobs.organization_id, jobs.client_id, jobs.connector_id, jobs.kind, jobs.task, jobs.entity, jobs.action,
    jobs.target, jobs.status, jobs.error, jobs.request_id, jobs.is_inline, jobs.effect, jobs.created_at,
    jobs.finished_at, jobs.session, jobs.session_id, jobs.approval,
    jobs.is_answer, jobs.policies
"""
# A cast of a malformed text would fail the statement, and with it the ends of the jobs of all organizations.
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
#: task → the name of its acceptance and of its end; other jobs have that of their operation
_NAMES = {
    "batch": "batch",
    "synchronize": "context_store.synchronize",
    "delete_connector": "connector.delete",
    "delete_workspace": "workspace.delete",
}
_NAMED = " ".join(f"WHEN '{task}' THEN '{name}'" for task, name in _NAMES.items())


def call_id_of(job: NewJob | JobSummary, *, is_new: bool = True) -> UUID | None:
    """The `call_id` of the entry of a new job's acceptance; None if no entry follows at its end."""
    return None if not is_new or (job.is_inline and job.effect is Effect.READ) else job.id


def code_in(error: str) -> str:
    """The expression for the code of an error, which `errors.document` puts first; null if the column is malformed."""
    return f"""substring({error} FROM '^\\s*\\{{\\s*"code"\\s*:\\s*"([^"\\\\]*)"')"""


#: A call whose caller waits has the code of its error, and how long it took; the acceptance of a job was counted
_CODE = f"CASE WHEN is_inline AND status = 'failed' THEN COALESCE({code_in('error')}, status) ELSE status END"
_TOOK = "CASE WHEN is_inline THEN (extract(epoch FROM now() - created_at) * 1000)::integer END"

#: those that decided when the job started, else when the call was requested, or the one that denied the job
_POLICIES = f"""
    CASE WHEN {code_in("ended.error")} = 'denied_by_policy' THEN
        array_remove(ARRAY[substring(ended.error FROM '"policy"\\s*:\\s*"([^"\\\\]*)"')], NULL)
    ELSE COALESCE(ended.policies, begun.policies) END
"""
#: of a call: the operations of a batch have entries of their own, and other tasks are no calls
_EFFECT = f"CASE WHEN task IN ('{OPERATION_TASK}', '{EXPORT_TASK}') THEN ended.effect END"
_ACTING = f"substring(ended.session ->> 'client_id' FROM '^({_UUID})$')::uuid"


def approval_id_of(jobs: str) -> str:
    """The expression for the id of the approval of a job; null if the column is malformed."""
    return f"""substring({jobs}.approval FROM '"id"\\s*:\\s*"({_UUID})"')::uuid"""


_APPROVAL = approval_id_of("ended")


def settling(jobs: str, *, outcome: str = _CODE) -> str:
    """The statement that inserts the entries of these jobs that have ended; `jobs` is the name of their rows.

    Calls that only read and whose caller waits have no second entry: the request has the only one.
    """
    return f"""
        INSERT INTO audit (organization_id, at, actor, connector_id, kind, what, target, changed, outcome, intent,
                           request_id, took_ms, entry_kind, call_id, acting_client, session_id, policies,
                           approval_id, approved_by, effect)
        SELECT ended.organization_id, now(), client_id, ended.connector_id, ended.kind,
               CASE task {_NAMED} ELSE COALESCE(entity || '.' || action, task) END, ended.target, begun.changed,
               {outcome}, begun.intent, ended.request_id, {_TOOK}, 'settlement', ended.id,
               {_ACTING}, ended.session_id, {_POLICIES}, {_APPROVAL},
               {approved_by(_APPROVAL)}, {_EFFECT}
        FROM {jobs} AS ended LEFT JOIN audit AS begun ON begun.call_id = ended.id AND begun.entry_kind = 'intent'
        WHERE client_id IS NOT NULL AND finished_at IS NOT NULL
          AND NOT is_answer AND NOT (is_inline AND ended.effect = 'read')
        {ONCE}
    """
