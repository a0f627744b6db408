"""Applications with own behaviour: a class for each kind that does not follow from its spec alone."""

from collections.abc import Mapping

from gateway.sandbox.application import Application
from gateway.sandbox.kinds.crm_query.application import CrmQuery
from gateway.sandbox.kinds.crm_records import CrmRecords
from gateway.sandbox.kinds.google_ads import GoogleAds
from gateway.sandbox.kinds.incident_management import IncidentManagement
from gateway.sandbox.kinds.linkedin_ads import LinkedInAds
from gateway.sandbox.kinds.snowflake import Snowflake
from gateway.sandbox.kinds.support_desk.application import SupportDesk
from gateway.sandbox.kinds.team_chat.application import TeamChat
from gateway.sandbox.kinds.work_management.application import WorkManagement
from gateway.sandbox.kinds.workspace_notes.application import WorkspaceNotes

#: kind → its application; all other kinds are a `SpecApplication`
APPLICATIONS: Mapping[str, type[Application]] = {
    "crm-query": CrmQuery,
    "crm-records": CrmRecords,
    "google-ads": GoogleAds,
    "incident-management": IncidentManagement,
    "linkedin-ads": LinkedInAds,
    "snowflake": Snowflake,
    "support-desk": SupportDesk,
    "team-chat": TeamChat,
    "work-management": WorkManagement,
    "workspace-notes": WorkspaceNotes,
}
