// Draws every <script type="application/json" data-for="ID"> into #ID with one template.
// Colours in the JSON are token names: "@measured", "@measured/0.2". The theme decides.
(() => {
  const css = () => getComputedStyle(document.documentElement);
  const colour = (name, style) => {
    const [token, alpha] = name.slice(1).split("/");
    const hex = style.getPropertyValue(`--${token}`).trim();
    if (!alpha || !/^#[0-9a-f]{6}$/i.test(hex)) return hex;
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    return `rgba(${r},${g},${b},${alpha})`;
  };
  const resolve = (value, style) => {
    if (typeof value === "string") return value.startsWith("@") ? colour(value, style) : value;
    if (Array.isArray(value)) return value.map((v) => resolve(v, style));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolve(v, style)]));
    return value;
  };
  const axis = {
    gridcolor: "@grid", linecolor: "@edge", zeroline: false, showline: true, ticks: "outside", ticklen: 4, tickcolor: "@edge",
    tickfont: { size: 12, color: "@ink-2" }, title: { standoff: 10, font: { size: 12, color: "@ink-2" } }, automargin: true, fixedrange: true,
  };
  const template = {
    layout: {
      font: { family: "@sans", size: 12, color: "@ink-2" },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 48, r: 12, t: 10, b: 44 },
      xaxis: { ...axis, showgrid: false }, yaxis: { ...axis, showline: false, ticks: "" },
      showlegend: false, bargap: 0.35, barcornerradius: 2, hovermode: "closest", dragmode: false,
      hoverlabel: { bgcolor: "@raised", bordercolor: "@edge", font: { color: "@ink", size: 12, family: "@sans" }, align: "left" },
      annotationdefaults: { showarrow: false, font: { size: 12, color: "@ink-2" } },
      colorway: ["@measured", "@promised", "@plain", "@earlier"],
    },
  };
  const config = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false };
  const specs = new Map();
  const SETTLED_MS = 150;

  const draw = (id) => {
    const style = css();
    const spec = specs.get(id);
    const layout = { ...resolve(spec.layout || {}, style), template: resolve(template, style) };
    if (document.getElementById(id).clientWidth < 420 && !layout.xaxis?.tickvals) {
      layout.xaxis = { ...layout.xaxis, nticks: 4, tickangle: 0 };
      delete layout.xaxis.dtick;
    }
    Plotly.react(id, resolve(spec.data, style), layout, config);
  };
  const cell = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
  const csv = (spec) => {
    const titles = ["xaxis", "yaxis"].map((axis) => spec.layout[axis]?.title?.text || axis[0]);
    const rows = spec.data.flatMap((trace) => trace.x.map((x, i) => [trace.name, x, trace.y[i] ?? ""]));
    return [["series", ...titles], ...rows].map((row) => row.map(cell).join(",")).join("\n");
  };

  addEventListener("DOMContentLoaded", () => {
    if (typeof Plotly === "undefined") return;
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target.id); }
    }, { rootMargin: "600px" });
    const take = (part) => {
      for (const node of part.querySelectorAll("script[data-for]")) {
        specs.set(node.dataset.for, JSON.parse(node.textContent));
        seen.observe(document.getElementById(node.dataset.for));
      }
    };
    take(document);
    // Parts that htmx brings have plots too; those of the part before are gone.
    document.addEventListener("htmx:beforeSwap", (event) => {
      for (const plot of event.detail.target.querySelectorAll(".chart")) { Plotly.purge(plot); specs.delete(plot.id); }
    });
    document.addEventListener("htmx:afterSettle", (event) => {
      if (event.detail.elt.isConnected) take(event.detail.elt);
    });
    const redraw = () => { for (const id of specs.keys()) if (document.getElementById(id).classList.contains("js-plotly-plot")) draw(id); };
    addEventListener("themechange", redraw);
    // How many ticks fit depends on the width.
    let resized;
    addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(redraw, SETTLED_MS); });
    addEventListener("beforeprint", () => { for (const id of specs.keys()) draw(id); });
    document.addEventListener("click", (event) => {
      const button = event.target.closest("[data-save]");
      if (!button) return;
      const id = button.dataset.of;
      if (button.dataset.save !== "csv") { draw(id); Plotly.downloadImage(id, { format: button.dataset.save, filename: id, scale: 2 }); return; }
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([csv(specs.get(id))], { type: "text/csv" }));
      link.download = `${id}.csv`;
      link.click();
      URL.revokeObjectURL(link.href);
    });
  });
})();
