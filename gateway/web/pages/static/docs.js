// Copy buttons, and tabs for examples in several languages. Without scripts all examples are shown.
"use strict";

// The text to copy; of a terminal session only the commands, without prompts and output.
const sourceOf = (pre) => {
  const text = pre.querySelector("code").textContent;
  const commands = text.split("\n").filter((line) => line.startsWith("$ "));
  return pre.dataset.language === "console" && commands.length ? commands.map((line) => line.slice(2)).join("\n") : text.trimEnd();
};

for (const pre of document.querySelectorAll(".text pre")) {
  const frame = document.createElement("div");
  frame.className = "code";
  pre.replaceWith(frame);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(sourceOf(pre));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  frame.append(pre, button);
}

const STORED = "docs-language";
const groups = [...document.querySelectorAll(".tabs")];

const choose = (group, label) => {
  for (const button of group.querySelectorAll("[role=tab]")) {
    const isChosen = button.textContent === label;
    button.setAttribute("aria-selected", isChosen);
    button.tabIndex = isChosen ? 0 : -1;
    document.getElementById(button.getAttribute("aria-controls")).hidden = !isChosen;
  }
};
const labelsOf = (group) => [...group.querySelectorAll("[role=tab]")].map((button) => button.textContent);
const chooseEverywhere = (label) => {
  localStorage.setItem(STORED, label);
  for (const group of groups) if (labelsOf(group).includes(label)) choose(group, label);
};

groups.forEach((group, number) => {
  const list = document.createElement("div");
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Language");
  const panels = [...group.querySelectorAll(".tab")];
  panels.forEach((panel, position) => {
    const label = panel.querySelector(".tab-label");
    const button = document.createElement("button");
    button.type = "button";
    button.id = `tab-${number}-${position}`;
    button.textContent = label.textContent;
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", `panel-${number}-${position}`);
    panel.id = `panel-${number}-${position}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", button.id);
    label.remove();
    button.addEventListener("click", () => chooseEverywhere(button.textContent));
    list.append(button);
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const buttons = [...list.children];
    const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
    next.focus();
    chooseEverywhere(next.textContent);
  });
  group.prepend(list);
  const labels = labelsOf(group);
  choose(group, labels.includes(localStorage.getItem(STORED)) ? localStorage.getItem(STORED) : labels[0]);
});
