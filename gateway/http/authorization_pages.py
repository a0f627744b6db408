"""The pages on which a person signs in and gives an agent's host access. They work without scripts; pure."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape

from yarl import URL

from gateway.authorization.model import AuthorizationRequest
from gateway.authorization.requests import is_redirect_uri

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:28rem;margin:4rem auto;padding:0 1rem;color:#1a1a1a}"
    "label{display:block;margin:.5rem 0}input[type=text],input[type=password],select{width:100%;padding:.5rem;"
    "box-sizing:border-box;font:inherit}button{font:inherit;padding:.5rem 1.5rem;margin:1rem .5rem 0 0}"
    ".error{color:#a40000}small{color:#555}fieldset{border:1px solid #ccc;margin:1rem 0}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_MEANING = {
    "read": "Read: look at everything that the workspaces' applications hold",
    "write": "Write: change data there, and connect applications",
}


def headers(redirect_uri: str | None = None) -> dict[str, str]:
    """What guards a page: no scripts, no frames, nothing from elsewhere; its forms may lead to the host alone."""
    actions = f"'self' {_source(redirect_uri)}".strip() if redirect_uri else "'self'"
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {actions}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "DENY",
    }


def _source(redirect_uri: str) -> str:
    """The origin, or the scheme of a host's own, as a source of the policy."""
    if not is_redirect_uri(redirect_uri):
        return ""
    url = URL(redirect_uri, encoded=True)
    return str(url.origin()) if url.scheme in ("http", "https") else f"{url.scheme}:"


def sign_in(request: AuthorizationRequest, sealed: str, error: str | None = None) -> str:
    """Where the person proves who they are."""
    return _page(
        f"Sign in to connect {request.host_name}",
        _who_asks(request)
        + (f'<p class="error">{escape(error)}</p>' if error else "")
        + _form(
            "/oauth/authorize/sign-in",
            sealed,
            '<label>Gateway client id<input type="text" name="client_id" autocomplete="username" required></label>'
            '<label>Gateway client secret<input type="password" name="client_secret" '
            'autocomplete="current-password" required></label><button>Sign in</button>',
        ),
    )


def organization(request: AuthorizationRequest, sealed: str, names: Mapping[str, str]) -> str:
    """Where the person chooses one of several organizations."""
    options = "".join(f'<option value="{escape(each)}">{escape(name)}</option>' for each, name in names.items())
    choice = f'<label>Organization<select name="organization_id">{options}</select></label><button>Go on</button>'
    return _page("Choose an organization", _form("/oauth/authorize/organization", sealed, choice))


def consent(
    request: AuthorizationRequest, sealed: str, name: str, scopes: Sequence[str], workspaces: Sequence[str]
) -> str:
    """Where the person says what the host may do, and where."""
    asked = "".join(
        f'<label><input type="checkbox" name="scope" value="{scope}" checked> {escape(_MEANING[scope])}</label>'
        for scope in scopes
    )
    places = "".join(
        f'<label><input type="checkbox" name="workspace" value="{escape(each)}"> {escape(each)}</label>'
        for each in workspaces
    )
    return _page(
        f"Give {request.host_name} access?",
        _who_asks(request)
        + f"<p>It will act for <b>{escape(name)}</b>.</p>"
        + _form(
            "/oauth/authorize/consent",
            sealed,
            f"<fieldset><legend>What it may do</legend>{asked}</fieldset>"
            "<fieldset><legend>Where</legend>"
            '<label><input type="checkbox" name="all_workspaces" value="yes" checked> '
            f"All workspaces, those to come too</label><small>or only these:</small>{places}</fieldset>"
            '<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Deny</button>',
        ),
    )


def refusal(text: str, back: str | None = None, host_name: str = "") -> str:
    """Why nothing can be given; the way back is a link, so that nobody is sent anywhere unasked."""
    link = f'<p><a href="{escape(back)}">Back to {escape(host_name)}</a></p>' if back else ""
    return _page("This request cannot be served", f'<p class="error">{escape(text)}</p>{link}')


def _who_asks(request: AuthorizationRequest) -> str:
    target = URL(request.redirect_uri, encoded=True)
    place = target.host if target.scheme in ("http", "https") else f"the program behind {target.scheme}:"
    return (
        f"<p><b>{escape(request.host_name)}</b> asks for access to this gateway. You will be sent on to "
        f"<b>{escape(str(place))}</b>.</p><p><small>Its id: {escape(request.host_id)}</small></p>"
    )


def _form(action: str, sealed: str, fields: str) -> str:
    hidden = f'<input type="hidden" name="request" value="{escape(sealed)}">'
    return f'<form method="post" action="{action}">{hidden}{fields}</form>'


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>"
    )
