"""The use cases of administrators: trust an issuer, list issuers, end the trust."""

from collections.abc import Iterator
from uuid import UUID

from yarl import URL

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller
from gateway.access.sign_in.issuer_store import IssuerStore
from gateway.contract.issuers import IssuerList, IssuerView, NewIssuer
from gateway.errors import FieldError, InvalidParams
from gateway.foundation.hosts import is_forbidden_host

#: maximum characters of an issuer, an audience and the name of a claim
_MAX_ISSUER, _MAX_AUDIENCE, _MAX_CLAIM = 2048, 255, 200
#: claims whose values are given to other people one day
_REASSIGNED = frozenset({"email", "name", "preferred_username", "unique_name", "upn"})


class Issuers:
    """The issuers that the caller's organization trusts; only for administrators of all workspaces."""

    def __init__(self, audit: Audit, store: IssuerStore, *, is_private: bool) -> None:
        self._audit = audit
        self._store = store
        #: whether issuers may be at private addresses, without TLS
        self._is_private = is_private

    async def all(self, caller: Caller) -> IssuerList:
        """The issuers, by their URLs."""
        caller.require_whole_organization()
        return IssuerList(list(await self._store.all(caller.organization_id)))

    async def add(self, caller: Caller, new: NewIssuer) -> IssuerView:
        """Trust an issuer; raises InvalidParams with all faults, and Conflict."""
        with self._audit.record("issuer.add", caller, changed=["issuer"]) as entry:
            caller.require_whole_organization()
            faults = [*_faults(new, is_private=self._is_private)]
            if faults:
                raise InvalidParams(faults=faults)
            added = await self._store.add(caller.organization_id, new, caller.client_id)
            entry.target = added.id
        return added

    async def delete(self, caller: Caller, issuer_id: UUID) -> None:
        """End the trust in an issuer and the sessions that came from it; raises NotFound."""
        with self._audit.record("issuer.delete", caller, target=str(issuer_id)):
            caller.require_whole_organization()
            await self._store.delete(caller.organization_id, issuer_id)


def _faults(new: NewIssuer, *, is_private: bool) -> Iterator[FieldError]:
    schemes = ("https", "http") if is_private else ("https",)
    if not _is_issuer(new.issuer, schemes):
        yield _fault("issuer", "must be an https URL without query and fragment, such as https://login.example.com")
    elif not is_private and is_forbidden_host(URL(new.issuer).host or ""):
        yield _fault("issuer", "must have a public name; private ones need GATEWAY_OIDC_PRIVATE=true from the operator")
    if not _is_short(new.audience, _MAX_AUDIENCE):
        yield _fault("audience", f"must be 1 to {_MAX_AUDIENCE} printable characters")
    if new.groups_claim is not None and not _is_short(new.groups_claim, _MAX_CLAIM):
        yield _fault("groups_claim", f"must be 1 to {_MAX_CLAIM} printable characters")
    if not _is_short(new.subject_claim, _MAX_CLAIM) or new.subject_claim in _REASSIGNED:
        yield _fault("subject_claim", "must be a claim that never names another person, such as sub or oid")


def _is_issuer(text: str, schemes: tuple[str, ...]) -> bool:
    if not (_is_short(text, _MAX_ISSUER) and text.isascii()) or "?" in text or "#" in text:
        return False
    try:
        url = URL(text)
        return url.scheme in schemes and bool(url.host) and not url.user and not url.password
    except ValueError:
        return False


def _is_short(text: str, most: int) -> bool:
    return 0 < len(text) <= most and text.isprintable()


def _fault(name: str, message: str) -> FieldError:
    return FieldError(f"/{name}", name, "invalid", f"{name}: {message}")
