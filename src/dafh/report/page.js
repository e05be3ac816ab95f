"use strict";
(() => {
  // Charts take the colours of the page, which differ by day and by night.
  const theme = (width) => ({
    background: "transparent",
    font: "system-ui, sans-serif",
    aria: false,
    axis: { labelColor: "currentColor", titleColor: "currentColor", domainColor: "#888", tickColor: "#888", gridColor: "#8884" },
    axisY: { labelLimit: Math.max(90, Math.round(width * 0.36)), titleLimit: 200, titleFontWeight: "normal" },
    axisX: { titleFontWeight: "normal", labelFlush: true },
    legend: { labelColor: "currentColor", titleColor: "currentColor", columns: width < 480 ? 1 : 0 },
    rule: { color: "currentColor" },
    view: { stroke: null },
  });

  const draw = async (place) => {
    const spec = JSON.parse(document.getElementById("spec-" + place.dataset.chart).textContent);
    // What is folded has no width of its own yet.
    const width = place.clientWidth || document.querySelector("main").clientWidth;
    if (!place.clientWidth) Object.assign(spec, { width, autosize: { type: "fit-x", contains: "padding" } });
    try {
      // The interpreter needs no permission to compile text into code, which this page does not give.
      await window.drawChart(place, spec, {
        actions: false, renderer: "svg", ast: true, config: theme(width),
      });
      // The place is one image with a label of its own; its parts have nothing to say to a screen reader.
      for (const part of place.querySelectorAll("svg, svg [role]")) {
        for (const name of ["role", "aria-label", "aria-roledescription"]) part.removeAttribute(name);
      }
      place.dataset.drawn = "yes";
    } catch (error) {
      place.classList.add("failed");
      place.textContent = "This chart could not be drawn; the table below has its figures.";
      console.error(error);
    }
  };

  document.querySelectorAll(".chart").forEach(draw);

  // On paper nothing can be unfolded.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((entry) => { entry.open = true; });
  });
  window.addEventListener("afterprint", () => folded.forEach((entry) => { entry.open = false; }));
})();
