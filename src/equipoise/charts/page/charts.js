// Draws the charts. What goes wrong is written where the chart should be. A scope of its own, for the scripts of Vega
// leave names behind.
{
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const actions = { export: true, source: false, compiled: false, editor: false };
  for (const place of document.querySelectorAll("[data-chart]")) {
    const key = place.dataset.chart;
    window.vegaEmbed(place, charts[key], { renderer: "svg", actions, downloadFileName: key })
      .then(() => { place.dataset.drawn = "yes"; })
      .catch((error) => { place.textContent = `This chart could not be drawn: ${error}`; console.error(error); });
  }
}
