// What the scripts of a page share: data, colours, number formats, and when to draw again.
"use strict";

const shardsim = (() => {
  const data = JSON.parse(document.getElementById("shardsim-data").textContent);

  const byteUnits = [
    ["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1],
  ];
  const timeUnits = [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]];

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  // Black or white, whichever is read more easily on the colour "#rrggbb".
  function inkOn(background) {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(background.slice(at, at + 2), 16));
    return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#10151d" : "#ffffff";
  }

  function scaled(value, units, digits) {
    const unit = units.find(([, factor]) => Math.abs(value) >= factor) || units[units.length - 1];
    return (value / unit[1]).toFixed(digits) + " " + unit[0];
  }

  function formatBytes(bytes) {
    return scaled(bytes, byteUnits, bytes < 1024 ? 0 : 1);
  }

  function formatSeconds(seconds) {
    if (seconds === 0) return "0 s";
    return scaled(seconds, timeUnits, seconds >= 1 || seconds < 1e-3 ? 3 : 2);
  }

  // [name, factor] of the unit for a whole axis: the one that suits its largest value.
  function axisUnit(largest, units) {
    return units.find(([, factor]) => largest >= factor) || units[units.length - 1];
  }

  // "0.07 TiB": in the unit of an axis, with digits enough to tell it.
  function inUnit(value, [name, factor]) {
    const scaled = value / factor;
    return `${scaled.toFixed(scaled >= 10 || scaled === 0 ? 1 : scaled >= 1 ? 2 : 3)} ${name}`;
  }

  // Ticks at powers of ten; where the axis has fewer than two, those that Chart.js makes.
  function decades(scale) {
    const whole = scale.ticks.filter((tick) => Number.isInteger(Math.log10(tick.value)));
    if (whole.length > 1) scale.ticks = whole;
  }

  function tickSeconds(seconds) {
    const units = [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]];
    // Powers of ten are not exact in binary: a millisecond may be a hair less.
    const [name, factor] = units.find(([, least]) => seconds >= least * (1 - 1e-9)) || units[3];
    return `${Number((seconds / factor).toPrecision(3))} ${name}`;
  }

  // Of horizontal stacked bars whose axis has that unit; values of datasets are divided by its
  // factor.
  function stackedBars([unitName, factor], format) {
    return {
      indexAxis: "y",
      animation: false,
      locale: "en-US",
      maintainAspectRatio: false,
      scales: {
        x: {
          stacked: true,
          grid: { color: color("grid"), borderColor: color("line") },
          ticks: { color: color("quiet") },
          title: { display: true, text: unitName, color: color("quiet") },
        },
        y: {
          stacked: true,
          grid: { display: false, borderColor: color("line") },
          ticks: { color: color("ink"), autoSkip: false },
        },
      },
      plugins: {
        legend: {
          position: "bottom",
          labels: { color: color("ink"), boxWidth: 12, boxHeight: 12 },
        },
        tooltip: {
          callbacks: { label: ({ dataset, raw }) => `${dataset.label}: ${format(raw * factor)}` },
        },
      },
    };
  }

  const redraws = [];
  function onAppearance(draw) {
    redraws.push(draw);
    draw();
  }
  function redrawAll() {
    for (const draw of redraws) draw();
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  // Paper is white.
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "light";
    redrawAll();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.theme;
    redrawAll();
  });

  return {
    data, byteUnits, timeUnits, color, formatBytes, formatSeconds, axisUnit, inUnit, decades, tickSeconds,
    stackedBars, onAppearance, inkOn,
  };
})();
