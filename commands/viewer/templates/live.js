"use strict";
(() => {
  const told = document.querySelector("#live"), parts = [...document.querySelectorAll("[data-live]")];
  const shown = parts.length ? parts : [document.querySelector("main")];
  let source = null, busy = false, newest = Number(told.dataset.position);
  const replace = fresh => {
    for (const part of shown) {
      const next = fresh.getElementById(part.id);
      if (!next || next.innerHTML === part.dataset.was) continue;
      const open = [...part.querySelectorAll("details")].map(each => each.open);
      part.dataset.was = next.innerHTML;
      part.replaceChildren(...document.adoptNode(next).childNodes);
      part.querySelectorAll("details").forEach((each, i) => { each.open = Boolean(open[i]); });
      part.dispatchEvent(new CustomEvent("renewed", {bubbles: true}));
    }
    const name = ".top bdi";  // which a page does not know that waits for the first reading
    document.querySelector(name).textContent = fresh.querySelector(name).textContent;
    document.title = fresh.title;
    const now = fresh.querySelector("#live");
    told.dataset.position = now.dataset.position;
    told.textContent = now.textContent;
  };
  const renew = async () => {
    if (busy) return;
    busy = true;
    try {
      while (Number(told.dataset.position) < newest && !document.hidden) {
        const reply = await fetch(location.href);
        if (!reply.ok) return;
        replace(new DOMParser().parseFromString(await reply.text(), "text/html"));
      }
    } finally {
      busy = false;
    }
  };
  const follow = () => {
    if (document.hidden || source) return;
    source = new EventSource("/events");
    source.onopen = () => { told.dataset.on = ""; };
    source.onerror = () => { delete told.dataset.on; };
    source.onmessage = event => { newest = Number(event.data); renew(); };
  };
  const rest = () => {
    if (source) source.close();
    source = null;
    delete told.dataset.on;
  };
  document.addEventListener("visibilitychange", () => document.hidden ? rest() : follow());
  addEventListener("pagehide", rest);
  addEventListener("pageshow", follow);
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
    const link = {j: "a[rel=next]", k: "a[rel=prev]"}[event.key];
    if (link) document.querySelector(link)?.click();
  });
})();
