"use strict";
(() => {
  const number = text => {
    const found = text.replace(/\u2212/g, "-").replace(/[$,]/g, "").match(/^-?[\d.]+/);
    return found ? parseFloat(found[0]) : null;
  };
  const compare = (one, other) => {
    const a = number(one), b = number(other);
    return a !== null && b !== null ? a - b : one.localeCompare(other);
  };
  const sortable = root => root.querySelectorAll("th[data-sort]").forEach(head => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const body = head.closest("table").tBodies[0], column = head.cellIndex;
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const each of head.parentNode.children) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = row => row.cells[column].firstChild?.textContent.trim() ?? "";
      const rows = [...body.rows].sort((a, b) => compare(text(a), text(b)) * (down ? -1 : 1));
      body.append(...rows);
    });
  });
  sortable(document);
  document.addEventListener("renewed", event => sortable(event.target));
  const form = document.querySelector(".filters");
  if (!form) return;
  const battles = [...document.querySelectorAll(".battle")];
  const chosen = name => form.elements[name];
  const fits = each =>
    (!chosen("entrant").value || [each.dataset.a, each.dataset.b].includes(chosen("entrant").value)) &&
    (!chosen("outcome").value || each.dataset.outcome === chosen("outcome").value) &&
    (!chosen("disputed")?.checked || "disputed" in each.dataset) &&
    each.textContent.toLowerCase().includes(chosen("text").value.toLowerCase());
  const show = () => {
    for (const each of battles) each.hidden = !fits(each);
    form.querySelector("output").textContent = `${battles.filter(each => !each.hidden).length} shown`;
  };
  form.hidden = false;
  form.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  document.addEventListener("keydown", event => {
    if (!"jk".includes(event.key) || /INPUT|SELECT/.test(event.target.tagName)) return;
    const visible = battles.filter(each => !each.hidden).map(each => each.querySelector("summary"));
    const at = visible.indexOf(document.activeElement);
    visible[Math.max(0, Math.min(visible.length - 1, at + (event.key === "j" ? 1 : -1)))]?.focus();
  });
  show();
})();
