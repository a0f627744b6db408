// Shows the applications that contain every word while a person types; without scripts the form does it.
"use strict";
const field = document.getElementById("filter");
const kinds = [...document.querySelectorAll("#kinds > li")];
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const kind of kinds) kind.hidden = !words.every((word) => kind.dataset.words.includes(word));
  const shown = kinds.filter((kind) => !kind.hidden).length;
  document.getElementById("found").textContent = `${shown} of ${kinds.length} applications`;
});
