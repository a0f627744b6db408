-- Health checks of a front end, whose role may be another than the one that migrates, tell whether the schema is whole.
GRANT SELECT ON migrations TO gateway_app;
