// The charts that compare configurations, drawn with Chart.js.
"use strict";

(() => {
  const { data, byteUnits, timeUnits, color, formatBytes, formatSeconds, axisUnit, inUnit,
          stackedBars, onAppearance } = shardsim;
  const configurations = data.configurations;
  const shorten = (name) => (name.length > 24 ? name.slice(0, 23) + "…" : name);
  const sum = (values) => values.reduce((a, b) => a + b, 0);

  // What the whole bar comes to, written at its end; only up to a comma where room is scarce. On a
  // plate, so that no mark strikes it; of a bar that is longer than the axis, inside, with an arrow.
  const totals = {
    id: "totals",
    afterDatasetsDraw(chart, _args, options) {
      const { ctx, scales } = chart;
      ctx.save();
      ctx.font = "600 12px system-ui, sans-serif";
      ctx.textBaseline = "middle";
      options.values.forEach((value, row) => {
        const beyond = value > scales.x.max;
        const end = scales.x.getPixelForValue(Math.min(value, scales.x.max)) + 6;
        const whole = beyond ? `${options.texts[row]} →` : options.texts[row];
        const room = beyond ? chart.width : chart.width - end;
        const text = ctx.measureText(whole).width > room ? whole.split(",")[0] : whole;
        const width = ctx.measureText(text).width;
        const x = beyond ? end - width - 12 : end;
        const y = scales.y.getPixelForValue(row);
        ctx.fillStyle = color("panel");
        ctx.fillRect(x - 3, y - 9, width + 6, 18);
        ctx.fillStyle = options.colors[row];
        ctx.fillText(text, x, y);
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

  // Where the axis ends, and whether bars are longer: what is beyond all measure would leave the
  // others no room. Memory is measured by the capacity, time by the median (`sums` are sorted).
  function axisEnd(sums, capacities, room) {
    const median = sums[Math.floor(sums.length / 2)];
    const largest = Math.max(...sums, ...capacities);
    const most = capacities.length > 0 ? 2 * Math.max(...capacities) : 4 * median;
    return most > 0 && largest * room > most ? [most, largest > most] : [largest * room, false];
  }

  // The end of an axis that is cut is no round number.
  function roundTicks(scale) {
    const [first, second] = scale.ticks.map((tick) => tick.value);
    scale.ticks = scale.ticks.filter((tick) => Number.isInteger(tick.value / (second - first)));
  }

  function options(unit, format, [end, cut], plugins) {
    const bars = stackedBars(unit, format);
    bars.layout = { padding: { right: 8, top: plugins.capacityMarks ? 20 : 0 } };
    bars.scales.x[cut ? "max" : "suggestedMax"] = end / unit[1];
    if (cut) bars.scales.x.afterBuildTicks = roundTicks;
    bars.scales.y.ticks.callback = function label(value) {
      return shorten(this.getLabelForValue(value));
    };
    Object.assign(bars.plugins, plugins);
    return bars;
  }

  // `series` are {label, color, values}; values in bytes or seconds, one per name. Bars are sorted,
  // the shortest first, where they are no stages; axis, labels and the capacity have one unit.
  function bars(canvas, names, series, units, format, extra = {}) {
    canvas.parentElement.style.height = `${120 + (extra.stages ? 28 : 40) * names.length}px`;
    const sumOf = names.map((_, row) => sum(series.map((one) => one.values[row])));
    const rows = names.map((_, row) => row);
    if (!extra.stages) rows.sort((a, b) => sumOf[a] - sumOf[b]);
    const inOrder = (values) => rows.map((row) => values[row]);
    const sums = inOrder(sumOf);
    const capacities = inOrder(extra.capacities || []).filter((value) => value !== undefined);
    const end = axisEnd(sums, capacities, extra.texts ? 1.9 : 1.15);
    const unit = axisUnit(end[0] / 1.15, units);
    const [, factor] = unit;
    const plugins = {
      totals: {
        values: sums.map((value) => value / factor),
        texts: extra.texts ? inOrder(extra.texts) : sums.map((value) => inUnit(value, unit)),
        colors: extra.colors ? inOrder(extra.colors) : sums.map(() => color("ink")),
      },
    };
    if (capacities.length > 0) {
      const equal = capacities.every((value) => value === capacities[0]);
      plugins.capacityMarks = {
        values: capacities.map((value) => value / factor),
        label: equal ? `capacity ${inUnit(capacities[0], unit)}` : "capacity",
      };
    }
    return new Chart(canvas, {
      type: "bar",
      data: {
        labels: inOrder(names),
        datasets: series.map((one) => ({
          label: one.label,
          backgroundColor: one.color,
          data: inOrder(one.values).map((value) => value / factor),
          borderColor: color("panel"),
          borderWidth: { right: 1 },
          maxBarThickness: 26,
        })),
      },
      // Room for the text at the end of the longest bar.
      options: options(unit, format, end, plugins),
      plugins: capacities.length > 0 ? [capacityMarks, totals] : [totals],
    });
  }

  function configurationBars(id, ...others) {
    return bars(document.getElementById(id), configurations.map((one) => one.name), ...others);
  }

  function memoryChart() {
    const series = data.categories.map((category, index) => ({
      label: category.label,
      color: color("category-" + category.key),
      values: configurations.map((one) => one.category_bytes[index]),
    }));
    const capacities = configurations.map((one) => one.capacity_bytes);
    const present = series.filter((one) => sum(one.values) > 0);
    return configurationBars("memory-chart", present, byteUnits, formatBytes, {
      capacities,
      colors: configurations.map((one) => color(one.fits ? "ink" : "bad")),
    });
  }

  // By cause, where any has it.
  function timeSeries(all) {
    return data.parts.map(({ key, label }, index) => ({
      label,
      color: color("time-" + key),
      values: all.map((one) => one.parts_s[index]),
    })).filter((one) => sum(one.values) > 0);
  }

  function timeChart() {
    return configurationBars("time-chart", timeSeries(configurations), timeUnits, formatSeconds);
  }

  function classCharts() {
    return [...document.querySelectorAll(".class-times")].map((figure) => {
      const { classes } = configurations[Number(figure.dataset.configuration)];
      return bars(figure.querySelector("canvas"), classes.map((one) => one.name),
                  timeSeries(classes), timeUnits, formatSeconds, { stages: true });
    });
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
      : total(one, "time_s") + (one.classes.length > 1 ? " of all stages" : "")
        + `, ${total(one, "exposed_s")} exposed`);
    return configurationBars("communication-chart", series, timeUnits, formatSeconds, { texts });
  }

  let charts = [];
  onAppearance(() => {
    for (const chart of charts) chart.destroy();
    charts = [memoryChart(), timeChart(), communicationChart(), ...classCharts()];
  });
})();
