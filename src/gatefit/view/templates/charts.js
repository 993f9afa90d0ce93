"use strict";
for (const chart of document.querySelectorAll(".chart")) {
  const data = JSON.parse(chart.dataset.chart);
  const plot = chart.querySelector(".plot"), svg = plot.querySelector("svg"), box = svg.viewBox.baseVal;
  const make = (name) => document.createElementNS(svg.namespaceURI, name);
  const cursor = make("path"), values = document.createElement("div");
  cursor.setAttribute("class", "cursor");
  values.className = "values";
  values.setAttribute("role", "status");
  values.hidden = true;
  plot.append(values);
  let at = -1;
  const hide = () => { at = -1; values.hidden = true; cursor.remove(); };
  const show = (i) => {
    i = Math.max(0, Math.min(data.x.length - 1, i));
    if (i === at) return;
    at = i;
    cursor.setAttribute("d", `M${data.x[i]} ${data.top}V${data.bottom}`);
    svg.append(cursor);
    values.replaceChildren(data.at[i]);
    for (const series of data.series) {
      const line = document.createElement("div"), dot = document.createElement("i");
      dot.style.background = series.color;
      line.append(dot, `${series.name}: ${series.text[i]}`);
      values.append(line);
    }
    values.hidden = false;
    const x = data.x[i] / box.width * plot.clientWidth, left = x > plot.clientWidth / 2;
    values.style.left = left ? "auto" : `${x + 12}px`;
    values.style.right = left ? `${plot.clientWidth - x + 12}px` : "auto";
  };
  const nearest = (event) => {
    const where = svg.getBoundingClientRect(), x = (event.clientX - where.left) / where.width * box.width;
    let best = 0;
    data.x.forEach((place, i) => { if (Math.abs(place - x) < Math.abs(data.x[best] - x)) best = i; });
    show(best);
  };
  plot.addEventListener("pointermove", nearest);
  plot.addEventListener("pointerdown", nearest);
  plot.addEventListener("pointerleave", () => { if (document.activeElement !== plot) hide(); });
  plot.addEventListener("focus", () => { if (at < 0) show(data.x.length - 1); });
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: data.x.length - 1 }[event.key];
    if (event.key === "Escape") hide();
    else if (step !== undefined) { event.preventDefault(); show(step); }
  });
}
