// Every task of a validated step as a point: predicted over measured time, and the line on which
// they agree. Memory at the peak as two bars for every program.
"use strict";

(() => {
  const { data, axisUnit, byteUnits, color, decades, formatBytes, formatSeconds, onAppearance,
    stackedBars, tickSeconds } = shardsim;

  // Of kernels: none of a collective's.
  const computing = { matmul: "forward", attention: "backward", memory: "optimizer" };

  function colorOf(kind) {
    return color("kind-" + (computing[kind] || kind)) || color("kind-transfer");
  }

  // Powers of ten around all times.
  function range() {
    const times = data.tasks.flatMap((task) => [task.predicted_s, task.measured_s]);
    if (times.length === 0) return [1e-6, 1];
    return [10 ** Math.floor(Math.log10(Math.min(...times))),
      10 ** Math.ceil(Math.log10(Math.max(...times)))];
  }

  function datasets(least, most) {
    const kinds = [...new Set(data.tasks.map((task) => task.kind))];
    const points = kinds.map((kind) => ({
      label: kind,
      data: data.tasks.filter((task) => task.kind === kind)
        .map((task) => ({ x: task.measured_s, y: task.predicted_s, task })),
      backgroundColor: colorOf(kind),
      borderColor: colorOf(kind),
      pointStyle: kind in computing ? "triangle" : "circle",
      pointRadius: 3,
    }));
    const agree = {
      label: "predicted = measured",
      data: [{ x: least, y: least }, { x: most, y: most }],
      showLine: true,
      borderColor: color("line"),
      backgroundColor: color("line"),
      borderWidth: 2,
      pointRadius: 0,
      pointHitRadius: 0,
    };
    return [...points, agree];
  }

  function draw() {
    const canvas = document.getElementById("predicted-over-measured");
    canvas.parentElement.style.height = "460px";
    const [least, most] = range();
    const axis = (title) => ({
      type: "logarithmic",
      min: least,
      max: most,
      grid: { color: color("grid"), borderColor: color("line") },
      title: { display: true, text: title, color: color("quiet") },
      afterBuildTicks: decades,
      ticks: { color: color("quiet"), callback: tickSeconds },
    });
    return new Chart(canvas, {
      type: "scatter",
      data: { datasets: datasets(least, most) },
      options: {
        animation: false,
        locale: "en-US",
        maintainAspectRatio: false,
        interaction: { mode: "nearest", intersect: true },
        scales: { x: axis("measured"), y: axis("predicted") },
        plugins: {
          legend: { position: "bottom", labels: { color: color("ink"), usePointStyle: true } },
          tooltip: {
            callbacks: {
              label: ({ raw }) => [
                `${raw.task.name}: ${raw.task.kind}, ${formatBytes(raw.task.bytes)}`,
                `predicted ${formatSeconds(raw.y)}, measured ${formatSeconds(raw.x)}`,
              ],
            },
          },
        },
      },
    });
  }

  const sum = (values) => values.reduce((a, b) => a + b, 0);

  // Bars of one colour: of every program predicted, then measured.
  function memorySeries() {
    const series = data.categories.map(({ key, label }, index) => ({
      label,
      color: color("category-" + key),
      bytes: data.memory.flatMap((one) => [one.predicted_bytes[index], one.measured_bytes[index]]),
    }));
    series.push({
      label: "shared granules",
      color: color("line"),
      bytes: data.memory.flatMap((one) => [0, one.shared_bytes]),
    });
    return series.filter((one) => one.bytes.some((bytes) => bytes > 0));
  }

  function drawMemory() {
    const canvas = document.getElementById("memory-at-the-peak");
    if (!canvas) return null;
    const series = memorySeries();
    const rows = 2 * data.memory.length;
    canvas.parentElement.style.height = `${120 + 34 * rows}px`;
    const peaks = Array.from({ length: rows }, (_, row) => sum(series.map((one) => one.bytes[row])));
    const [unit, factor] = axisUnit(Math.max(...peaks), byteUnits);
    const names = data.memory.length > 1 ? data.memory.map((one) => one.program + ", ") : [""];
    return new Chart(canvas, {
      type: "bar",
      data: {
        labels: names.flatMap((name) => [name + "predicted", name + "measured"]),
        datasets: series.map((one) => ({
          label: one.label,
          backgroundColor: one.color,
          data: one.bytes.map((bytes) => bytes / factor),
          maxBarThickness: 26,
        })),
      },
      options: stackedBars([unit, factor], formatBytes),
    });
  }

  let charts = [];
  onAppearance(() => {
    for (const chart of charts) if (chart) chart.destroy();
    charts = [draw(), drawMemory()];
  });
})();
