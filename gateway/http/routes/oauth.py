"""Tokens, consents at the applications, and the organizations' OAuth apps."""

from gateway.contract.oauth import (
    REVOKE,
    TOKEN,
    AppList,
    AppView,
    FlowView,
    GrantedTokenView,
    StartedConsentView,
    TokenView,
)
from gateway.http.api import oauth, tokens
from gateway.http.route import NO_STORE, PRIVATE, Route
from gateway.identity.model import Scope

READ, WRITE, ADMIN = Scope.READ, Scope.WRITE, Scope.ADMIN
_CONNECTORS = "/api/v1/integrations/connectors"
_NOT_STORED = dict.fromkeys((200, 400, 401, 413, 429), NO_STORE)

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/api/v1/account/applications/token",
        tokens.issue_token,
        "Get a bearer token for a client's id and secret",
        "Tokens",
        body=tokens.TokenBody,
        errors=(401,),
        response=TokenView,
        sends={200: NO_STORE},
        is_open=True,
        command="gateway token",
    ),
    Route(
        "POST",
        TOKEN,
        tokens.grant_token,
        "Get a bearer token by a grant of RFC 6749",
        "Tokens",
        form=tokens.TokenRequest,
        response=GrantedTokenView,
        sends=_NOT_STORED,
        is_open=True,
    ),
    Route(
        "POST",
        REVOKE,
        tokens.revoke_token,
        "Revoke a bearer token (RFC 7009)",
        "Tokens",
        form=tokens.RevokeToken,
        sends=_NOT_STORED,
        is_open=True,
    ),
    Route(
        "POST",
        _CONNECTORS + "/oauth/initiate",
        oauth.initiate_oauth,
        "Start a user's consent",
        "OAuth",
        body=oauth.InitiateOAuth,
        errors=(409, 424, 502, 504),
        response=StartedConsentView,
        answers={200: "The URL for the user's browser"},
        sends={200: PRIVATE},
        scope=WRITE,
        audit="oauth.initiate",
        command="gateway connect team-chat",
        python=(
            'consent = await gateway.connectors.connect("team-chat", redirect_url)\n'
            "print(consent.url)  # for the user's browser\n"
            "print(await consent.wait())"
        ),
    ),
    Route(
        "GET",
        _CONNECTORS + "/oauth/consent",
        oauth.begin_consent,
        "Begin a consent in the user's browser",
        "OAuth",
        query=oauth.ConsentQuery,
        errors=(404,),
        is_browser_step=True,
        answers={
            303: "Redirects to the application's page and sets the cookie that the callback requires",
            400: "The consent is unknown, used or expired",
        },
        media={400: ("text/plain",)},
        sends={
            303: ("Location", "Set-Cookie", "Cache-Control", "Referrer-Policy"),
            400: PRIVATE,
        },
        is_open=True,
    ),
    Route(
        "GET",
        _CONNECTORS + "/oauth/callback",
        oauth.finish_oauth,
        "OAuth callback",
        "OAuth",
        query=oauth.CallbackQuery,
        errors=(404,),
        is_browser_step=True,
        answers={
            303: "Redirects to redirect_url, with connector_id, or error and error_description, in its query",
            400: "The consent is unknown, used or expired",
        },
        media={400: ("text/plain",)},
        sends={
            303: ("Location", "Set-Cookie", "Cache-Control", "Referrer-Policy"),
            400: PRIVATE,
        },
        audit="connector.create",
        is_open=True,
    ),
    Route(
        "GET",
        _CONNECTORS + "/oauth/flows/{flow_id}",
        oauth.get_oauth_flow,
        "Get the state of a consent",
        "OAuth",
        response=FlowView,
        scope=READ,
    ),
    Route(
        "PUT",
        "/api/v1/oauth/credentials",
        oauth.put_oauth_app,
        "Set the organization's own OAuth app for a kind",
        "OAuth",
        body=oauth.PutOAuthApp,
        response=AppView,
        scope=ADMIN,
        audit="oauth_app.put",
        command="gateway apps set team-chat --client-id acme-agents",
        python='print(await gateway.apps.set("team-chat", "acme-agents", client_secret))',
    ),
    Route(
        "GET",
        "/api/v1/oauth/credentials",
        oauth.list_oauth_apps,
        "List the organization's own OAuth apps",
        "OAuth",
        response=AppList,
        scope=READ,
        command="gateway apps list",
        python="print(await gateway.apps.list())",
    ),
    Route(
        "DELETE",
        "/api/v1/oauth/credentials/connector_type/{connector_type}",
        oauth.delete_oauth_app,
        "Use the platform's OAuth app again",
        "OAuth",
        answers={204: "The next consent uses the platform's app"},
        scope=ADMIN,
        audit="oauth_app.delete",
        command="gateway apps delete support-desk",
        python='await gateway.apps.delete("support-desk")',
    ),
)
