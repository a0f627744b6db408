// Sends the outcome to the opener of the popup, or to the page around the frame.
"use strict";
const outcome = document.getElementById("outcome").dataset;
const other = window.opener || (window.parent !== window ? window.parent : null);
if (other && outcome.origin) {
  const message = { type: "gateway.connect", status: outcome.status, connector_id: outcome.connectorId || null };
  other.postMessage(message, outcome.origin);
  // connect.js closes the popup once it has the message; the message of a closed window might be lost. Without
  // connect.js the popup closes itself.
  if (window.opener && outcome.status === "completed") setTimeout(() => window.close(), 1000);
} else if (!other && outcome.next && outcome.status === "completed") {
  window.location.replace(outcome.next);
}
