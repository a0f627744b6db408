// The reference: Swagger UI over /openapi.json, with a search of operations, and samples of each from the document.
"use strict";

const matches = (operation, words) => {
  const told = operation.get("operation");
  const text = [operation.get("path"), operation.get("method"), ...["operationId", "summary", "description"].map((name) => told.get(name))];
  const haystack = text.join(" ").toLowerCase();
  return words.every((word) => haystack.includes(word));
};

const search = (groups, phrase) => {
  const words = phrase.toLowerCase().split(/\s+/).filter(Boolean);
  const found = groups.map((group) => group.update("operations", (operations) => operations.filter((each) => matches(each, words))));
  return found.filter((group) => group.get("operations").size);
};

const samplesOf = (system, path, method) => {
  const samples = system.specSelectors.specJson().getIn(["paths", path, method, "x-codeSamples"]);
  if (!samples) return null;
  const { createElement } = system.React;
  const each = samples.map((sample, index) =>
    createElement(
      "details",
      { key: index, open: index === 0, className: "sample" },
      createElement("summary", null, sample.get("label")),
      createElement("pre", { tabIndex: 0 }, createElement("code", null, sample.get("source"))),
    ),
  );
  return createElement("section", { className: "samples" }, createElement("h4", null, "Examples"), each.toArray());
};

const plugin = (system) => {
  const { createElement, Fragment } = system.React;
  return {
    fn: { opsFilter: search },
    wrapComponents: {
      // A link within the button of a row cannot be reached by itself: the row is the link.
      OperationSummaryPath: () => ({ operationProps }) =>
        createElement("span", { className: "opblock-summary-path" }, operationProps.get("path").replace(/\//g, "​/")),
      // The server is the one that served this page.
      ServersContainer: () => () => null,
      FilterContainer: () => () =>
        createElement(
          "div",
          { className: "search" },
          createElement("label", { htmlFor: "search" }, "Search operations"),
          createElement("input", {
            id: "search",
            type: "search",
            placeholder: "download, job, /oauth/token",
            onChange: (event) => system.layoutActions.updateFilter(event.target.value || true),
          }),
        ),
      responses: (Original) => (props) =>
        createElement(Fragment, null, samplesOf(system, props.path, props.method), createElement(Original, props)),
    },
  };
};

// What the viewer leaves without a name that can be read aloud.
const names = {
  ".examples-select-element": "Examples",
  ".close-modal": "Close",
  ".auth.authorize.button": "Authorize",
  ".content-type, .media-type": "Media type",
  textarea: "Value",
};
const name = () => {
  for (const [selector, label] of Object.entries(names)) {
    for (const element of document.querySelectorAll(selector)) {
      if (element.getAttribute("aria-label") !== label) element.setAttribute("aria-label", label);
    }
  }
};
new MutationObserver(name).observe(document.getElementById("reference"), { childList: true, subtree: true });

const scheme = window.matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", scheme.matches);
scheme.addEventListener("change", follow);
follow();

fetch("/openapi.json")
  .then((answer) => answer.json())
  .then((spec) => {
    window.reference = SwaggerUIBundle({
      spec: { ...spec, servers: [{ url: window.location.origin }] },
      dom_id: "#reference",
      deepLinking: true,
      filter: true,
      defaultModelsExpandDepth: 0,
      docExpansion: "list",
      displayRequestDuration: true,
      syntaxHighlight: false,
      validatorUrl: null,
      plugins: [plugin],
    });
  })
  .catch((error) => {
    document.getElementById("reference").textContent = `The document could not be read: ${error}`;
  });
