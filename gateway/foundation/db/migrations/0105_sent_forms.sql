-- Keys of the forms that a session has sent, the latest first: a form that is sent twice does its work once.
ALTER TABLE console_sessions ADD COLUMN sent_forms uuid[] NOT NULL DEFAULT '{}';
