// Shows the operations that hold every word of the search, and hides the rest.
"use strict";
const field = document.getElementById("search");
const found = document.getElementById("found");
const actions = [...document.querySelectorAll(".action")];

const show = () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const action of actions) {
    const told = action.dataset.words.toLowerCase();
    action.hidden = !words.every((word) => told.includes(word));
  }
  for (const entity of document.querySelectorAll(".entity")) {
    entity.hidden = !entity.querySelector(".action:not([hidden])");
  }
  const count = actions.filter((action) => !action.hidden).length;
  document.querySelector(".contents").hidden = words.length > 0;
  found.textContent = words.length ? `${count} operations` : "";
};
field.addEventListener("input", show);
// A link may lead to what the search hides.
window.addEventListener("hashchange", () => {
  field.value = "";
  show();
  document.getElementById(decodeURIComponent(window.location.hash.slice(1)))?.scrollIntoView();
});
