"""Job rows as they are read and written: their columns, what is sealed in them, and the way to a `StoredJob`.

Params, state and results are sealed like credentials: a data key for each job, wrapped by the newest key. A sealed text
begins with a word that no JSON begins with, so that unsealed rows, of before or of a gateway that does not seal, are
read beside sealed ones.
"""

import binascii
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.errors import InternalError
from gateway.jobs.model import JobSummary, NewJob, StoredJob
from gateway.vault.vault import Binding, Sealed, Vault, decrypt, encrypt

#: columns that are read otherwise than by their name
_READ_AS = {"labels": "jobs.labels::text AS labels", "is_stored": "jobs.result IS NOT NULL AS is_stored"}
#: the PostgreSQL types of what is accepted
_TYPES = {
    UUID: "uuid",
    str: "text",
    bool: "boolean",
    bytes: "bytea",
    Effect: "text",
    Mapping[str, Any]: "text",
    Mapping[str, str]: "jsonb",
}


def _selected(struct: type[msgspec.Struct]) -> str:
    """The columns of a Struct's members, which have the same names."""
    return ", ".join(_READ_AS.get(name, f"jobs.{name}") for name in struct.__struct_fields__)


def _type_of(annotation: Any) -> str:
    """The PostgreSQL type of a member, which may be null."""
    return next(_TYPES[each] for each in (annotation, *get_args(annotation)) if each in _TYPES)


# What may be large is not in it: params, selection, state and result.
SUMMARY_COLUMNS = _selected(JobSummary)
COLUMNS = _selected(StoredJob)
#: column → its type, of what is accepted: the members of a `NewJob`
_INSERTED = {name: _type_of(hint) for name, hint in get_type_hints(NewJob).items()}
INSERTED_COLUMNS = ", ".join(_INSERTED)
#: jobs as arrays of their columns, in the order of `INSERTED_COLUMNS`
NEW_JOBS = f"unnest({', '.join(f'${number}::{type_}[]' for number, type_ in enumerate(_INSERTED.values(), 1))})"
#: the number of the first argument after those of `NEW_JOBS`
NEXT_ARGUMENT = len(_INSERTED) + 1
_SEALED = "sealed:"
#: what says nothing is left as it is: SQL looks for it
_EMPTY = "{}"
#: data keys of jobs at work or looked at that are remembered
_REMEMBERED = 2000
_FIELD = "job"


@dataclass(frozen=True, slots=True)
class JobKey:
    """Whose texts they are, and what opens them: a wrapped data key; None where they are not sealed."""

    organization_id: UUID
    job_id: UUID
    key_id: str | None
    wrapped_key: bytes | None

    def associated_data(self, field: str) -> bytes:
        """What binds a sealed text to its field of this job."""
        return binding(self.organization_id, self.job_id).associated_data(field, with_context=False)


def binding(organization_id: UUID, job_id: UUID) -> Binding:
    """The associated data of a job's data key: it cannot be opened for another job."""
    return Binding(organization_id, job_id, _FIELD)


def key_of(job: JobSummary) -> JobKey:
    """The data key of a job's sealed texts."""
    return JobKey(job.organization_id, job.id, job.key_id, job.wrapped_key)


class JobSealing:
    """Seals new jobs with a vault, where that is wished, and opens whatever is sealed."""

    def __init__(self, vault: Vault | None = None, *, is_on: bool = True) -> None:
        self._vault = vault
        self._is_on = is_on
        self._ciphers: OrderedDict[bytes, AESGCM] = OrderedDict()

    def new_key(self, organization_id: UUID, job_id: UUID) -> JobKey:
        """A data key for a job that is accepted now."""
        if self._vault is None or not self._is_on:
            return JobKey(organization_id, job_id, None, None)
        wrapped, data_key = self._vault.new_data_key(binding(organization_id, job_id))
        self._remember(wrapped.wrapped_key, AESGCM(data_key))
        return JobKey(organization_id, job_id, wrapped.key_id, wrapped.wrapped_key)

    def key_of_new(self, new: NewJob) -> JobKey:
        """The data key of a job that is accepted now: the one that it brings, else a new one."""
        if new.wrapped_key is None:
            return self.new_key(new.organization_id, new.id)
        return JobKey(new.organization_id, new.id, new.key_id, new.wrapped_key)

    def seal(self, key: JobKey, field: str, text: str) -> str:
        """The text, readable only as this field of this job; as it is where the job has no key."""
        if key.wrapped_key is None or text == _EMPTY:
            return text
        sealed = encrypt(self._cipher(key), text.encode(), key.associated_data(field))
        return _SEALED + binascii.b2a_base64(sealed, newline=False).decode()

    def open(self, key: JobKey, field: str, text: str) -> str:
        """The text again; what was altered or swapped does not open (InternalError)."""
        if not text.startswith(_SEALED):
            return text
        sealed = binascii.a2b_base64(text[len(_SEALED) :])
        return decrypt(self._cipher(key), sealed, key.associated_data(field)).decode()

    def _cipher(self, key: JobKey) -> AESGCM:
        if self._vault is None or key.key_id is None or key.wrapped_key is None:
            raise InternalError("a job is sealed, and there is no key for it")
        cipher = self._ciphers.get(key.wrapped_key)
        if cipher is None:
            wrapped = Sealed(key.key_id, key.wrapped_key, b"")
            cipher = AESGCM(self._vault.data_key(wrapped, binding(key.organization_id, key.job_id)))
            self._remember(key.wrapped_key, cipher)
        return cipher

    def _remember(self, wrapped_key: bytes, cipher: AESGCM) -> None:
        self._ciphers[wrapped_key] = cipher
        if len(self._ciphers) > _REMEMBERED:
            self._ciphers.popitem(last=False)


def part_field(part: int) -> str:
    """The field of one part of a result: parts cannot be swapped either."""
    return f"part {part}"


#: for a process without a vault: it seals nothing, and opens nothing that is sealed
NO_SEALING = JobSealing()


def inserted_columns(new: Sequence[NewJob], sealing: JobSealing) -> list[list[Any]]:
    """Jobs that are accepted now as the arguments of `NEW_JOBS`: an array for each column."""
    return [list(column) for column in zip(*(_inserted_row(each, sealing) for each in new), strict=True)]


def _inserted_row(new: NewJob, sealing: JobSealing) -> tuple[Any, ...]:
    key = sealing.key_of_new(new)
    members = {name: getattr(new, name) for name in new.__struct_fields__}
    members["params"] = sealing.seal(key, "params", json.dumps(dict(new.params)))
    members["selection"] = json.dumps(dict(new.selection))
    members["labels"] = json.dumps(dict(new.labels))
    members["key_id"], members["wrapped_key"] = key.key_id, key.wrapped_key
    return tuple(members.values())


def summary_of(row: Any) -> JobSummary:
    """The job in a row of `SUMMARY_COLUMNS`."""
    return JobSummary(**_members(row))


def job_of(row: Any, sealing: JobSealing) -> StoredJob:
    """The job in a row of `COLUMNS`, opened."""
    members = _members(row)
    key = JobKey(members["organization_id"], members["id"], members["key_id"], members["wrapped_key"])
    for name in ("params", "state"):
        members[name] = json.loads(sealing.open(key, name, members[name]))
    members["selection"] = json.loads(members["selection"])
    return StoredJob(**members)


def accepted_job(row: Any, new: NewJob) -> StoredJob:
    """The job in a row of `SUMMARY_COLUMNS` that was just written, with what it was written of."""
    return StoredJob(**_members(row), params=dict(new.params), selection=dict(new.selection), state={})


def _members(row: Any) -> dict[str, Any]:
    members = dict(row)
    members["labels"] = json.loads(members["labels"])
    members["error"] = None if members["error"] is None else json.loads(members["error"])
    members["effect"] = Effect(members["effect"])
    members["status"] = JobStatus(members["status"])
    return members
