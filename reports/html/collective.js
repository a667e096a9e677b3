// Time and bus bandwidth of a collective over size: a line for what is predicted, points for what
// was measured.
"use strict";

(() => {
  const { data, color, decades, formatBytes, formatSeconds, onAppearance, tickSeconds } = shardsim;
  const mostTicks = 9;

  function formatRate(rate) {
    const units = [["TB/s", 1e12], ["GB/s", 1e9], ["MB/s", 1e6], ["kB/s", 1e3], ["B/s", 1]];
    const [name, factor] = units.find(([, least]) => rate >= least) || units[units.length - 1];
    return `${Number((rate / factor).toPrecision(4))} ${name}`;
  }

  // Powers of two, or of a power of two where those are too many; of a single size, that size.
  function sizeTicks(least, most) {
    const first = Math.ceil(Math.log2(least));
    const last = Math.floor(Math.log2(most));
    if (first >= last) return [...new Set([least, most])];
    const step = Math.ceil((last - first + 1) / mostTicks);
    const ticks = [];
    for (let power = first; power <= last; power += step) ticks.push(2 ** power);
    return ticks;
  }

  // A tick as people say sizes: 64 KiB, not 64.0 KiB.
  function tickBytes(bytes) {
    return formatBytes(bytes).replace(".0 ", " ");
  }

  function series(key) {
    const points = data.rows.filter((row) => row[key] != null)
      .map((row) => ({ x: row.bytes, y: row[key] }));
    return points.sort((a, b) => a.x - b.x);
  }

  function overSize(id, key, formatTick, format) {
    const canvas = document.getElementById(id);
    canvas.parentElement.style.height = "360px";
    const sizes = data.rows.map((row) => row.bytes);
    const least = Math.min(...sizes);
    const most = Math.max(...sizes);
    const predicted = series(key);
    const measured = series("measured_" + key);
    const text = color("quiet");
    const axis = (title) => ({
      type: "logarithmic",
      grid: { color: color("grid"), borderColor: color("line") },
      title: { display: true, text: title, color: text },
    });
    const datasets = [{
      label: "predicted",
      data: predicted,
      showLine: true,
      borderColor: color("time-compute"),
      backgroundColor: color("time-compute"),
      borderWidth: 2,
      pointRadius: predicted.length > 60 ? 0 : 2,
    }];
    if (measured.length > 0) {
      datasets.unshift({
        label: "measured",
        data: measured,
        borderColor: color("time-exposed"),
        backgroundColor: color("time-exposed"),
        pointStyle: "circle",
        pointRadius: 4,
      });
    }
    return new Chart(canvas, {
      type: "scatter",
      data: { datasets },
      options: {
        animation: false,
        locale: "en-US",
        maintainAspectRatio: false,
        interaction: { mode: "nearest", axis: "x", intersect: false },
        scales: {
          x: {
            ...axis("size"),
            min: least === most ? least / 2 : least,
            max: least === most ? most * 2 : most,
            afterBuildTicks(scale) {
              scale.ticks = sizeTicks(least, most).map((value) => ({ value }));
            },
            ticks: { color: text, autoSkip: false, maxRotation: 50, callback: tickBytes },
          },
          y: { ...axis(""), afterBuildTicks: decades, ticks: { color: text, callback: formatTick } },
        },
        plugins: {
          legend: {
            display: measured.length > 0,
            position: "bottom",
            labels: { color: color("ink"), usePointStyle: true },
          },
          tooltip: {
            callbacks: {
              title: (items) => formatBytes(items[0].raw.x),
              label: (item) => `${item.dataset.label}: ${format(item.raw.y)}`,
            },
          },
        },
      },
    });
  }

  let charts = [];
  onAppearance(() => {
    for (const chart of charts) chart.destroy();
    charts = [
      overSize("time-over-size", "time_s", tickSeconds, formatSeconds),
      overSize("bandwidth-over-size", "busbw_Bps", formatRate, formatRate),
    ];
  });
})();
