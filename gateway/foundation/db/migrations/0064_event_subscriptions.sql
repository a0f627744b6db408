-- Subscriptions of agents' hosts by events/subscribe (SEP-3415): webhooks whose client brings the secret and refreshes them.

ALTER TABLE webhooks
    -- derived from the client, the URL, the event type and its arguments; null for a webhook that is no subscription
    ADD COLUMN subscription_id text,
    -- null never expires
    ADD COLUMN expires_at timestamptz,
    -- the grant whose token subscribed; the subscription ends with it
    ADD COLUMN grant_id uuid,
    -- whether the receiver is still to be told that the subscription ended
    ADD COLUMN is_ending boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX webhooks_of_subscriptions ON webhooks (organization_id, subscription_id)
    WHERE subscription_id IS NOT NULL;
CREATE INDEX webhooks_verified ON webhooks (client_id, url) WHERE subscription_id IS NOT NULL;

-- the category of the last attempt's failure
ALTER TABLE webhook_deliveries ADD COLUMN failure text;
