// Shows the operations that contain every word of the search, and hides the others.
"use strict";
const field = document.getElementById("search");
const found = document.getElementById("found");
const actions = [...document.querySelectorAll(".action")];

const show = () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const action of actions) {
    const text = action.dataset.words.toLowerCase();
    action.hidden = !words.every((word) => text.includes(word));
  }
  for (const entity of document.querySelectorAll(".entity")) {
    entity.hidden = !entity.querySelector(".action:not([hidden])");
  }
  const count = actions.filter((action) => !action.hidden).length;
  found.textContent = words.length ? `${count} operations` : "";
};
field.addEventListener("input", show);
// A link may lead to an operation that the search hides.
window.addEventListener("hashchange", () => {
  field.value = "";
  show();
  document.getElementById(decodeURIComponent(window.location.hash.slice(1)))?.scrollIntoView();
});
