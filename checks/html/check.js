// Of every experiment two bars, before and now: its step's time, memory and bytes sent by parts.
"use strict";

(() => {
  const { data, axisUnit, byteUnits, timeUnits, color, formatBytes, formatSeconds,
    stackedBars, onAppearance } = shardsim;

  const sum = (values) => values.reduce((a, b) => a + b, 0);

  // {labels, bars}: of each experiment that has them, before and now.
  function rowsOf(key) {
    const labels = [];
    const bars = [];
    for (const one of data.experiments) {
      for (const when of ["before", "now"]) {
        const values = one[when] && one[when][key];
        if (!values) continue;
        labels.push([one.name, when]);
        bars.push(values);
      }
    }
    return { labels, bars };
  }

  function draw(id, key, parts, units, format) {
    const canvas = document.getElementById(id);
    const { labels, bars } = rowsOf(key);
    if (bars.length === 0) {
      canvas.closest("figure").hidden = true;
      return null;
    }
    canvas.parentElement.style.height = `${110 + 34 * bars.length}px`;
    const [unit, factor] = axisUnit(Math.max(...bars.map(sum)), units);
    const datasets = parts
      .map(({ label, colour }, index) => ({
        label,
        backgroundColor: color(colour) || color("kind-transfer"),
        data: bars.map((values) => values[index] / factor),
        maxBarThickness: 24,
      }))
      .filter((one) => one.data.some((value) => value > 0));
    return new Chart(canvas, {
      type: "bar",
      data: { labels, datasets },
      options: stackedBars([unit, factor], format),
    });
  }

  const times = [
    { label: "compute", colour: "time-compute" },
    { label: "contention", colour: "time-contention" },
    { label: "exposed communication", colour: "time-exposed" },
    { label: "idle", colour: "time-idle" },
  ];
  const coloured = (prefix) => ({ key, label }) => ({ label, colour: prefix + key });

  let charts = [];
  onAppearance(() => {
    for (const chart of charts) if (chart) chart.destroy();
    charts = [
      draw("check-times", "times_s", times, timeUnits, formatSeconds),
      draw("check-memory", "memory_bytes", data.categories.map(coloured("category-")), byteUnits,
        formatBytes),
      draw("check-traffic", "wire_bytes", data.kinds.map(coloured("kind-")), byteUnits,
        formatBytes),
    ];
  });
})();
