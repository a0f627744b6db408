// A form for each operation, which sends it to this gateway with a token that stays in the page.
"use strict";

let token = "";

const field = (form, name, value, type = "text") => {
  const label = document.createElement("label");
  const input = document.createElement(type === "textarea" ? "textarea" : "input");
  if (type !== "textarea") input.type = type;
  input.value = value;
  input.spellcheck = false;
  input.autocomplete = "off";
  label.append(name, input);
  form.append(label);
  return input;
};

const formOf = (operation) => {
  const form = document.createElement("form");
  form.className = "try";
  const bearer = "open" in operation.dataset ? null : field(form, "Bearer token", token, "password");
  const rows = [...operation.querySelectorAll("tr[data-name]")].filter((row) => row.dataset.in !== "header");
  const inputs = rows.map((row) => {
    const { name, example, in: place } = row.dataset;
    return { name, place, input: field(form, name, "required" in row.dataset ? example : "") };
  });
  const example = operation.querySelector(".body-example");
  const body = example && field(form, "Body", example.querySelector("code").textContent.trim(), "textarea");
  const send = document.createElement("button");
  send.textContent = "Send";
  const output = document.createElement("div");
  output.setAttribute("role", "status");
  form.append(send, output);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    token = bearer ? bearer.value : token;
    let path = operation.dataset.path;
    const query = new URLSearchParams();
    for (const { name, place, input } of inputs) {
      if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(input.value));
      else if (input.value) query.set(name, input.value);
    }
    const headers = bearer ? { Authorization: `Bearer ${token}` } : {};
    if (body) headers["Content-Type"] = example.dataset.type;
    const isForm = body && example.dataset.type.includes("urlencoded");
    const sent = isForm ? new URLSearchParams(JSON.parse(body.value)) : body?.value;
    const started = performance.now();
    try {
      const answer = await fetch(path + (query.size ? `?${query}` : ""), { method: operation.dataset.method, headers, body: sent });
      const text = await answer.text();
      const isJson = (answer.headers.get("Content-Type") ?? "").includes("json") && text.startsWith("{");
      show(output, `${answer.status} in ${Math.round(performance.now() - started)} ms`, isJson ? JSON.stringify(JSON.parse(text), null, 2) : text.slice(0, 100_000));
    } catch (error) {
      show(output, "The request could not be sent", String(error));
    }
  });
  return form;
};

const show = (output, status, text) => {
  const heading = document.createElement("p");
  const pre = document.createElement("pre");
  heading.textContent = status;
  pre.tabIndex = 0;
  pre.textContent = text;
  output.replaceChildren(heading, pre);
};

for (const operation of document.querySelectorAll(".operation")) {
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "Try it";
  details.append(summary);
  details.addEventListener("toggle", () => details.children.length === 1 && details.append(formOf(operation)));
  operation.append(details);
}
