-- The primary key begins with the client; an organization's clients are looked up by the organization.
CREATE INDEX client_organizations_by_organization ON client_organizations (organization_id);
