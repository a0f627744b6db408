-- Kinds that administrators import in the console. They are served by the whole gateway, so no organization owns a row.

CREATE TABLE imported_kinds (
    kind text NOT NULL,
    version integer NOT NULL,
    -- the address or the file name of the OpenAPI document
    source text NOT NULL,
    -- connector.yaml and the files of the entities, as JSON
    document jsonb NOT NULL,
    report text NOT NULL,
    -- who imported it
    importing_organization uuid NOT NULL,
    importing_client uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- the version with the latest time is served; a version without one is a draft
    served_at timestamptz,
    PRIMARY KEY (kind, version)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON imported_kinds TO gateway_app;
