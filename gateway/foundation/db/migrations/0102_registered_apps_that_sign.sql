-- An app that the gateway has registered may prove itself by a JWT that the gateway signs (RFC 7523 §2.2).
ALTER TABLE oauth_registrations
    DROP CONSTRAINT oauth_registrations_authentication_check,
    ADD CONSTRAINT oauth_registrations_authentication_check
        CHECK (authentication IN ('basic', 'body', 'none', 'private_key_jwt'));
