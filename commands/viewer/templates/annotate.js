"use strict";
(() => {
  const keys = {a: "[value=a]", b: "[value=b]", t: "[value=tie]", s: "[value=skip]", u: "a[rel=prev]", n: "a[rel=next]"};
  let voted = false;
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || voted) return;
    const found = document.querySelector(keys[event.key.toLowerCase()] || "none");
    if (!found) return;
    voted = true;
    found.click();
  });
})();
