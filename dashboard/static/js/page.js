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

  // On a phone the navigation scrolls: the page that is open stays in view.
  document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

  // Forms and links that htmx serves: empty fields stay out of the address, errors are shown where the answer would be.
  const form = document.querySelector("form.filters");
  if (form) form.querySelector("button").hidden = true;
  document.body.addEventListener("htmx:configRequest", (event) => {
    const wanted = event.detail.formData;
    // A button that stands outside of its form is none of those that htmx looks at.
    const button = event.detail.triggeringEvent?.submitter;
    if (button?.name) wanted.set(button.name, button.value);
    if (event.target !== form) return;
    if (wanted.get("order") === form.elements.order.options[0].value) wanted.delete("order");
    for (const [name, value] of [...wanted]) if (!value) wanted.delete(name);
  });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (event.target === form && event.detail.successful) history.replaceState(null, "", event.detail.pathInfo.finalRequestPath);
  });
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const detail = event.detail;
    if (detail.isError && !new DOMParser().parseFromString(detail.serverResponse, "text/html").getElementById(detail.target.id)) {
      detail.selectOverride = ".trouble";
      detail.swapOverride = "innerHTML";
    }
  });
  document.body.addEventListener("htmx:sendError", (event) => {
    event.detail.target.textContent = "draftscope does not answer. Nothing was changed; try again.";
  });
  document.body.addEventListener("htmx:afterSwap", (event) => {
    const picked = event.detail.elt.querySelector?.(".rel[aria-pressed=true]");
    if (picked) document.getElementById("engine_version").value = picked.value;
  });

  // Live: rows change where they stand. New ones are announced, so that nothing moves under the reader.
  const live = document.querySelector("[data-live]");
  if (live) {
    const says = live.querySelector("span");
    const runs = (page) => new Map([...page.querySelectorAll("#rows [data-run]")].map((row) => [row.dataset.run, row]));
    let known;
    const refresh = async () => {
      const answer = await fetch(location.href);
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const [here, there] = [runs(document), runs(page)];
      for (const [id, row] of there) if (here.has(id) && here.get(id).innerHTML !== row.innerHTML) here.get(id).replaceWith(row);
      document.getElementById("tally").replaceWith(page.getElementById("tally"));
      const added = [...there.keys()].filter((id) => !here.has(id)).length;
      // On one page of several, what is new to it may have stood on another.
      const paged = page.querySelector("#rows .pages");
      if (!added) says.textContent = `live, changed ${new Date().toLocaleTimeString()}`;
      else says.textContent = paged ? "the order changed" : `${added} new ${added === 1 ? "run" : "runs"}`;
      live.querySelector("a")?.remove();
      if (added) live.append(Object.assign(document.createElement("a"), { href: location.href, textContent: "Show" }));
    };
    const news = new EventSource("/api/v1/events");
    news.addEventListener("open", () => { live.hidden = false; live.removeAttribute("data-off"); });
    news.addEventListener("error", () => { live.toggleAttribute("data-off", news.readyState === EventSource.CLOSED); });
    news.addEventListener("runs", (event) => {
      if (known !== undefined && known !== event.data) refresh();
      known = event.data;
    });
    addEventListener("pagehide", () => news.close());
  }

  // A watched run: its figures over time follow along, not faster than people read.
  const watched = document.querySelector("#over-time[hx-get]");
  if (watched) {
    let known, renewed = Date.now();
    const news = new EventSource("/api/v1/events");
    news.addEventListener("runs", (event) => {
      const changed = known !== undefined && known !== event.data;
      known = event.data;
      const part = document.getElementById("over-time");
      if (!changed || document.hidden || Date.now() - renewed < 15000 || part.contains(document.activeElement)) return;
      renewed = Date.now();
      htmx.trigger(part, "renew");
    });
    addEventListener("pagehide", () => news.close());
  }

  // Uploads: what was chosen, how much is sent, and the token where the service asks for one.
  const upload = document.querySelector("[data-upload]");
  if (upload) {
    const [bar, sent] = [upload.querySelector(".progress"), upload.querySelector("progress")];
    const drop = upload.querySelector(".drop");
    upload.elements.files.addEventListener("change", () => {
      upload.querySelector(".chosen").textContent = [...upload.elements.files.files].map((file) => file.name).join(", ");
    });
    for (const name of ["dragover", "dragleave", "drop"]) drop.addEventListener(name, () => drop.toggleAttribute("data-over", name === "dragover"));
    document.body.addEventListener("htmx:configRequest", (event) => {
      const token = upload.querySelector("[data-token]")?.value;
      if (event.target === upload && token) event.detail.headers.Authorization = `Bearer ${token}`;
    });
    upload.addEventListener("htmx:xhr:progress", (event) => {
      const { loaded, total } = event.detail;
      if (!total) return;
      bar.hidden = false;
      sent.value = (100 * loaded) / total;
      bar.querySelector("span").textContent = loaded < total ? `${Math.round(sent.value)}%` : "Reading and judging";
    });
    upload.addEventListener("htmx:afterRequest", () => { bar.hidden = true; });
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
