// The charts that compare configurations, drawn with Chart.js.
"use strict";

(() => {
  const { data, byteUnits, timeUnits, color, formatBytes, formatSeconds, axisUnit, onAppearance } =
    shardsim;
  const configurations = data.configurations;
  const shorten = (name) => (name.length > 24 ? name.slice(0, 23) + "…" : name);
  const sum = (values) => values.reduce((a, b) => a + b, 0);

  // What the whole bar comes to, written at its end; only up to a comma where room is scarce.
  const totals = {
    id: "totals",
    afterDatasetsDraw(chart, _args, options) {
      const { ctx, scales } = chart;
      ctx.save();
      ctx.font = "600 12px system-ui, sans-serif";
      ctx.textBaseline = "middle";
      options.values.forEach((value, row) => {
        const x = scales.x.getPixelForValue(value) + 6;
        const whole = options.texts[row];
        const text = x + ctx.measureText(whole).width > chart.width ? whole.split(",")[0] : whole;
        ctx.fillStyle = options.colors[row];
        ctx.fillText(text, x, scales.y.getPixelForValue(row));
      });
      ctx.restore();
    },
  };

  // A dashed mark across every bar at the capacity of its device; one line where all are equal.
  const capacityMarks = {
    id: "capacityMarks",
    afterDatasetsDraw(chart, _args, options) {
      if (!options.values) return;
      const { ctx, scales, chartArea } = chart;
      const half = (chartArea.bottom - chartArea.top) / options.values.length / 2;
      ctx.save();
      ctx.strokeStyle = color("ink");
      ctx.lineWidth = 1.5;
      ctx.setLineDash([5, 4]);
      options.values.forEach((value, row) => {
        const x = scales.x.getPixelForValue(value);
        const y = scales.y.getPixelForValue(row);
        ctx.beginPath();
        ctx.moveTo(x, y - half);
        ctx.lineTo(x, y + half);
        ctx.stroke();
      });
      ctx.setLineDash([]);
      ctx.fillStyle = color("ink");
      ctx.font = "12px system-ui, sans-serif";
      ctx.textAlign = "center";
      ctx.fillText(options.label, scales.x.getPixelForValue(options.values[0]), chartArea.top - 8);
      ctx.restore();
    },
  };

  function options(unit, format, largest, plugins) {
    const [unitName, factor] = unit;
    const text = color("quiet");
    return {
      indexAxis: "y",
      animation: false,
      locale: "en-US",
      maintainAspectRatio: false,
      layout: { padding: { right: 8, top: plugins.capacityMarks ? 20 : 0 } },
      scales: {
        x: {
          stacked: true,
          suggestedMax: largest / factor,
          grid: { color: color("grid"), borderColor: color("line") },
          ticks: { color: text },
          title: { display: true, text: unitName, color: text },
        },
        y: {
          stacked: true,
          grid: { display: false, borderColor: color("line") },
          ticks: {
            color: color("ink"),
            autoSkip: false,
            callback(value) { return shorten(this.getLabelForValue(value)); },
          },
        },
      },
      plugins: {
        legend: {
          position: "bottom",
          labels: { color: color("ink"), boxWidth: 12, boxHeight: 12 },
        },
        tooltip: {
          callbacks: { label: (item) => `${item.dataset.label}: ${format(item.raw * factor)}` },
        },
        ...plugins,
      },
    };
  }

  // `series` are {label, color, values}; values in bytes or seconds, one per configuration.
  function bars(id, series, units, format, extra = {}) {
    const canvas = document.getElementById(id);
    canvas.parentElement.style.height = `${120 + 40 * configurations.length}px`;
    const sums = configurations.map((_, row) => sum(series.map((one) => one.values[row])));
    const largest = Math.max(...sums, ...(extra.capacities || [0]));
    const unit = axisUnit(largest, units);
    const [, factor] = unit;
    const plugins = {
      totals: {
        values: sums.map((value) => value / factor),
        texts: extra.texts || sums.map(format),
        colors: extra.colors || sums.map(() => color("ink")),
      },
    };
    if (extra.capacities) {
      plugins.capacityMarks = {
        values: extra.capacities.map((value) => value / factor),
        label: extra.capacityLabel,
      };
    }
    return new Chart(canvas, {
      type: "bar",
      data: {
        labels: configurations.map((one) => one.name),
        datasets: series.map((one) => ({
          label: one.label,
          backgroundColor: one.color,
          data: one.values.map((value) => value / factor),
          borderColor: color("panel"),
          borderWidth: { right: 1 },
          maxBarThickness: 26,
        })),
      },
      // Room for the text at the end of the longest bar.
      options: options(unit, format, largest * (extra.texts ? 1.9 : 1.15), plugins),
      plugins: extra.capacities ? [totals, capacityMarks] : [totals],
    });
  }

  function memoryChart() {
    const series = data.categories.map((category, index) => ({
      label: category.label,
      color: color("category-" + category.key),
      values: configurations.map((one) => one.category_bytes[index]),
    }));
    const capacities = configurations.map((one) => one.capacity_bytes);
    const equal = capacities.every((value) => value === capacities[0]);
    const present = series.filter((one) => sum(one.values) > 0);
    return bars("memory-chart", present, byteUnits, formatBytes, {
      capacities,
      capacityLabel: equal ? `capacity ${formatBytes(capacities[0])}` : "capacity",
      colors: configurations.map((one) => color(one.fits ? "ink" : "bad")),
    });
  }

  function timeChart() {
    const part = (label, key) => ({
      label,
      color: color("time-" + key),
      values: configurations.map((one) => one[key + "_s"]),
    });
    return bars("time-chart",
                [part("compute", "compute"), part("contention", "contention"),
                 part("exposed communication", "exposed"), part("idle", "idle")],
                timeUnits, formatSeconds);
  }

  // One colour per kind; other axes of the same kind are fainter.
  function communicationChart() {
    const rows = configurations.flatMap((one) => one.communication);
    const labels = [...new Set(rows.map((row) => row.label))];
    const seen = new Map();
    const series = labels.map((label) => {
      const kind = label.split(" ")[0];
      const before = seen.get(kind) || 0;
      seen.set(kind, before + 1);
      const opacity = ["", "a0", "60", "38"][Math.min(before, 3)];
      return {
        label,
        color: color("kind-" + kind) + opacity,
        values: configurations.map((one) =>
          sum(one.communication.filter((row) => row.label === label).map((row) => row.time_s))),
      };
    });
    const total = (one, key) => formatSeconds(sum(one.communication.map((row) => row[key])));
    const texts = configurations.map((one) => one.communication.length === 0 ? "none"
      : `${total(one, "time_s")}, ${total(one, "exposed_s")} exposed`);
    return bars("communication-chart", series, timeUnits, formatSeconds, { texts });
  }

  let charts = [];
  onAppearance(() => {
    for (const chart of charts) chart.destroy();
    charts = [memoryChart(), timeChart(), communicationChart()];
  });
})();
