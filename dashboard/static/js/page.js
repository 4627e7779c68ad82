// Small conveniences; every page works without them.
(() => {
  document.addEventListener("click", async (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      const before = copy.textContent;
      try {
        await navigator.clipboard.writeText(copy.closest(".cmd").querySelector("pre").textContent);
        copy.textContent = "Copied";
      } catch {
        // Without a secure context there is no clipboard: select the text instead.
        getSelection().selectAllChildren(copy.closest(".cmd").querySelector("pre"));
        copy.textContent = "Selected";
      }
      setTimeout(() => { copy.textContent = before; }, 1500);
    }
    if (event.target.closest("[data-open-all]")) for (const d of document.querySelectorAll(".finding")) d.open = true;
  });

  // Very wide screens have a column for findings: open everything that is not a note.
  if (matchMedia("(min-width: 128rem)").matches) for (const d of document.querySelectorAll(".finding:has([data-sev=critical], [data-sev=warning])")) d.open = true;

  // A finding linked to is a finding opened.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.matches("details")) { target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);
  reveal();

  // The filter bar is a GET form; here its answer replaces the rows while one types, and the address follows.
  const form = document.querySelector("form.filters");
  if (form) {
    let latest = 0;
    let waiting;
    const apply = async () => {
      const asked = ++latest;
      const wanted = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
      if (wanted.get("order") === form.elements.order.options[0].value) wanted.delete("order");
      const address = wanted.size ? `${form.action}?${wanted}` : form.action;
      const answer = await fetch(address);
      if (!answer.ok) { form.submit(); return; }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (asked !== latest) return;
      for (const id of ["tally", "rows"]) document.getElementById(id).replaceWith(page.getElementById(id));
      history.replaceState(null, "", address);
    };
    form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 200); });
    form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); apply(); });
    form.querySelector("button").hidden = true;
  }

  addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") document.getElementById("keys").showModal();
    if (event.key === "t") document.querySelector("[data-theme-toggle]").click();
    if (event.key === "o") document.querySelector("[data-open-all]")?.click();
    if (event.key === "[" || event.key === "]") {
      const all = [...document.querySelectorAll(".sec")];
      // From the section that has the focus: while the page still glides there its place says nothing.
      const focused = all.indexOf(document.activeElement.closest(".sec"));
      const at = focused >= 0 ? focused : all.findLastIndex((section) => section.getBoundingClientRect().top < 80);
      const to = all[event.key === "]" ? at + 1 : Math.max(at - 1, 0)];
      if (to) { to.scrollIntoView(); to.tabIndex = -1; to.focus({ preventScroll: true }); }
    }
    if (event.key === "/") {
      const search = document.querySelector("input[type=search]");
      if (search) { event.preventDefault(); search.focus(); }
    }
  });
})();
