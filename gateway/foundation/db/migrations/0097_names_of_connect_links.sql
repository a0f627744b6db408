-- A connect link may name the connector that it creates.
ALTER TABLE connect_sessions ADD COLUMN connector_name text;
