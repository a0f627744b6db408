"""Names of business applications. If a task names one without a kind, most likely no operation does the task.

Names that are also common words ("Front", "Box", "Teams" alone) are left out.
"""

import re
from collections.abc import Collection

_NAMES = """
    ActiveCampaign; Adobe; Airtable; Amazon; Amplitude; Asana; AWS; Azure; BambooHR; Basecamp; Bitbucket; Braintree;
    Calendly; Canva; Chargebee; CircleCI; ClickUp; Confluence; Datadog; DocuSign; Dropbox; Evernote; Excel; Expensify;
    Facebook; Figma; Freshdesk; Freshservice; Gainsight; GitHub; GitLab; Gmail; Google; Gorgias; Grafana; Greenhouse;
    Gusto; Help Scout; Heroku; Hootsuite; HubSpot; iCloud; incident.io; Instagram; Intercom; Jenkins; Jira; Kayako;
    Klaviyo; Kubernetes; LinkedIn; Looker; Magento; Mailchimp; Marketo; Microsoft Teams; Microsoft; Mixpanel; Miro;
    monday.com; MS Teams; NetSuite; New Relic; Notion; Okta; OneDrive; OneNote; OpsGenie; Oracle; Outlook; PagerDuty;
    PayPal; Personio; Pinterest; Pipedrive; Power BI; QuickBooks; Recurly; Reddit; Rippling; Salesforce; SAP; SendGrid;
    Sentry; ServiceNow; SharePoint; Shopify; Skype; Slack; Smartsheet; Snowflake; Splunk; Spotify; Stripe; SugarCRM;
    SurveyMonkey; Tableau; Telegram; TikTok; Todoist; Toggl; Trello; Twilio; Twitter; Typeform; Vimeo; Webex; Webflow;
    WhatsApp; WooCommerce; WordPress; Workday; Wrike; Xero; YouTube; Zapier; Zendesk; Zoho; Zoom
"""


def pattern_of_others(known: Collection[str]) -> re.Pattern[str]:
    """A pattern of the names that are not in `known`, whose names are in lower case."""
    names = [name for name in (each.strip() for each in _NAMES.split(";")) if name.lower() not in known]
    return re.compile(rf"(?<![\w@#.])(?:{'|'.join(map(re.escape, names))})(?![\w@])")
