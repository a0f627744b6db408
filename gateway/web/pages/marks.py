"""The letter marks of applications: letters in the colour of the brand. Pure."""

import re
from dataclasses import dataclass
from zlib import crc32

#: application → the colour of its brand, near the one on its own pages; https://simpleicons.org has most of them
_BRANDS = {
    "Airtable": "#18bfff",
    "Amazon Ads": "#ff9900",
    "Amazon Seller Partner": "#146eb4",
    "Amplitude": "#1e61f0",
    "Asana": "#f06a6a",
    "Ashby": "#4b45d1",
    "Chargebee": "#ff3300",
    "ClickUp": "#7b68ee",
    "Confluence": "#172b4d",
    "Customer.io": "#ffcd00",
    "Exa": "#1f40ed",
    "Facebook Marketing": "#0866ff",
    "Freshdesk": "#25c16f",
    "GitHub": "#181717",
    "GitLab": "#fc6d26",
    "Gmail": "#ea4335",
    "Gong": "#8039df",
    "Google Ads": "#4285f4",
    "Google Analytics": "#e37400",
    "Google Drive": "#0f9d58",
    "Google Search Console": "#458cf5",
    "Granola": "#b2c248",
    "Greenhouse": "#24a47f",
    "Harvest": "#fa5d00",
    "HubSpot": "#ff7a59",
    "Intercom": "#1f8ded",
    "Jira": "#0052cc",
    "Klaviyo": "#232426",
    "Linear": "#5e6ad2",
    "LinkedIn Ads": "#0a66c2",
    "Mailchimp": "#ffe01b",
    "Notion": "#000000",
    "Orb": "#111111",
    "Outreach": "#5951ff",
    "PayPal": "#002991",
    "Pinterest": "#bd081c",
    "Pylon": "#5b0eff",
    "Reddit Ads": "#ff4500",
    "Salesforce": "#00a1e0",
    "SendGrid": "#1a82e2",
    "Sentry": "#362d59",
    "Shopify": "#7ab55c",
    "Slack": "#4a154b",
    "Snapchat Marketing": "#fffc00",
    "Snowflake": "#29b5e8",
    "Stripe": "#635bff",
    "TikTok Marketing": "#000000",
    "Twilio": "#f22f46",
    "Typeform": "#262627",
    "WooCommerce": "#96588a",
    "Zendesk": "#03363d",
    "Zendesk Chat": "#03363d",
    "Zendesk Talk": "#03363d",
    "Zoho CRM": "#e42527",
    "incident.io": "#f25533",
    "monday.com": "#6161ff",
}
#: colours of other applications, such as imported ones
_OTHERS = ("#1d4ed8", "#0f766e", "#b45309", "#7e22ce", "#be123c", "#166534", "#9d174d", "#3730a3")
_LIGHT, _DARK = "#ffffff", "#000000"
#: a part of a name such as `GitHub`
_HUMP = re.compile(r"[A-Z][a-z]+")


@dataclass(frozen=True, slots=True)
class Mark:
    """The letters of an application, its colour, and the colour of the letters on it."""

    letters: str
    color: str
    ink: str


def mark_of(application: str) -> Mark:
    """The mark of an application: the same on every page."""
    color = _BRANDS.get(application) or _OTHERS[crc32(application.encode()) % len(_OTHERS)]
    ink = max((_LIGHT, _DARK), key=lambda each: contrast(each, color))
    return Mark(letters(application), color, ink)


def letters(name: str) -> str:
    """The initials of two words, or of two parts of a word such as `GitHub`, or else the first two letters."""
    words = [word for word in name.replace("-", " ").split() if word[0].isalnum()]
    if not words:
        return "?"
    parts = words if len(words) > 1 else _HUMP.findall(words[0])
    return (parts[0][0] + parts[1][0]).upper() if len(parts) > 1 else words[0][:2].capitalize()


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 to 21 (WCAG 2.2 §1.4.3)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    """The relative luminance of `#rrggbb` (WCAG 2.2)."""
    shares = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
