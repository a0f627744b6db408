-- A connection of one organization sees the clients of that organization only.

CALL gateway_isolate('client_organizations');
