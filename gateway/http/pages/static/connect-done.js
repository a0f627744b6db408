// Tells whoever opened the page how it ended: the opener of a popup, or the page around a frame.
"use strict";
const outcome = document.getElementById("outcome").dataset;
const other = window.opener || (window.parent !== window ? window.parent : null);
if (other && outcome.origin) {
  const message = { type: "gateway.connect", status: outcome.status, connector_id: outcome.connectorId || null };
  other.postMessage(message, outcome.origin);
  // The opener closes the popup once it has the message, which a closed window's might not reach; without connect.js
  // the popup closes by itself.
  if (window.opener && outcome.status === "completed") setTimeout(() => window.close(), 1000);
} else if (!other && outcome.next && outcome.status === "completed") {
  window.location.replace(outcome.next);
}
