// Where parameters, FLOPs and saved activations of a model sit: a bar each, layers of one kind a
// part.
"use strict";

(() => {
  const { data, color, stackedBars, onAppearance } = shardsim;
  const palette = ["parameters", "activations", "gradients", "optimizer", "communication",
                   "temporaries", "gathered_parameters", "inputs"];
  const rows = [["Parameters", "parameters"], ["FLOPs forward", "forward_flops"],
                ["Saved activations", "saved_bytes"]];
  const totals = rows.map(([, key]) => data.parts.reduce((sum, part) => sum + part[key], 0));

  let chart;
  onAppearance(() => {
    if (chart) chart.destroy();
    const canvas = document.getElementById("shares");
    canvas.parentElement.style.height = `${200 + 20 * Math.ceil(data.parts.length / 4)}px`;
    const options = stackedBars(["%", 1], (share) => `${share.toFixed(1)} %`);
    options.scales.x.max = 100;
    chart = new Chart(canvas, {
      type: "bar",
      data: {
        labels: rows.map(([label]) => label),
        datasets: data.parts.map((part, index) => ({
          label: part.name,
          backgroundColor: color(`category-${palette[index % palette.length]}`),
          data: rows.map(([, key], row) => totals[row] > 0 ? 100 * part[key] / totals[row] : 0),
          borderColor: color("panel"),
          borderWidth: { right: 1 },
          maxBarThickness: 26,
        })),
      },
      options,
    });
  });
})();
