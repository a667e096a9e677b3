// One step of one configuration: the passes of its microbatches, the streams of every device class
// as lanes, what they take of links and the memory of a device beneath on the same time axis. Wheel
// (with the picture focused, or with Ctrl) zooms, dragging moves, +, -, arrow keys and 0 do the same.
"use strict";

(() => {
  const { data, byteUnits, timeUnits, color, formatBytes, formatSeconds, axisUnit, inUnit,
          onAppearance, inkOn, linkTracks, passLane } = shardsim;
  const gutter = 136;  // left of the lanes, for their names
  const edge = 12;     // right of them
  const axisHeight = 22;
  const laneHeight = 24;
  const memoryHeight = 150;
  const gap = 14;
  const font = "12px system-ui, sans-serif";

  // A round step that leaves at most `count` ticks in `span`.
  function tickStep(span, count) {
    const raw = span / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  }

  function nameOf(timeline, segment) {
    const [, , , kind, layer, name, tasks] = segment;
    if (name >= 0) return timeline.names[name].replace("{}", layer >= 0 ? layer : "{}");
    const where = layer >= 0 ? `layer ${layer}: ` : "";
    return `${where}${tasks} tasks, ${data.kinds[kind]}`;
  }

  class StepView {
    constructor(figure, configuration) {
      this.figure = figure;
      this.canvas = figure.querySelector("canvas");
      this.configuration = configuration;
      this.timeline = configuration.timeline;
      this.whole = Math.max(1, configuration.step_s * 1e9);
      this.from = 0;
      this.to = this.whole;
      this.height = axisHeight;
      const { classes } = this.timeline;
      for (const one of classes) {
        one.row = this.height;
        if (one.passes.length > 0) this.height += passLane.height;
      }
      if (this.height > axisHeight) this.height += gap;
      for (const one of classes) {
        one.lanes = this.height;
        // A stream without work needs no lane.
        const used = new Set(one.segments.map((segment) => segment[2]));
        one.shown = one.streams.map((_, index) => index).filter((index) => used.has(index));
        this.height += laneHeight * one.shown.length + gap;
        one.tracks = this.height;
        if (one.links.length > 0) this.height += linkTracks.height * one.links.length + gap;
        one.graph = this.height;
        if (one.memory.length > 0) this.height += memoryHeight + gap;
      }
      this.addControls();
      this.addLegends();
      this.tip = figure.appendChild(document.createElement("div"));
      this.tip.className = "tip";
      this.tip.hidden = true;
      this.listen();
      onAppearance(() => this.draw());
      new ResizeObserver(() => this.draw()).observe(this.canvas);
    }

    addControls() {
      const controls = document.createElement("div");
      controls.className = "controls";
      const button = (text, label, action) => {
        const one = controls.appendChild(document.createElement("button"));
        one.type = "button";
        one.textContent = text;
        one.setAttribute("aria-label", label);
        one.addEventListener("click", action);
      };
      button("+", "Zoom in", () => this.zoom(0.5, (this.from + this.to) / 2));
      button("−", "Zoom out", () => this.zoom(2, (this.from + this.to) / 2));
      button("whole step", "Show the whole step", () => this.show(0, this.whole));
      const hint = controls.appendChild(document.createElement("span"));
      hint.className = "quiet";
      hint.textContent = "drag to move, Ctrl + wheel to zoom, point at a bar to read it";
      this.figure.insertBefore(controls, this.canvas);
    }

    // Two legends: kinds above the lanes, categories below the memory.
    addLegends() {
      const legend = (entries) => {
        const list = document.createElement("ul");
        list.className = "legend";
        for (const [variable, text] of entries) {
          const item = list.appendChild(document.createElement("li"));
          const swatch = item.appendChild(document.createElement("span"));
          swatch.style.background = `var(--${variable})`;
          item.append(text);
        }
        return list;
      };
      const segments = this.timeline.classes.flatMap((one) => one.segments);
      const kinds = new Set(segments.map((segment) => segment[3]));
      this.canvas.before(legend(data.kinds.map((kind, index) => [this.kindVariable(index), kind])
        .filter((_, index) => kinds.has(index))));
      this.canvas.after(legend(data.categories.filter((_, index) => this.hasCategory(index))
        .map(({ key, label }) => ["category-" + key, label])));
    }

    hasCategory(index) {
      return this.timeline.classes.some((one) => one.memory.some((row) => row[index + 1] > 0));
    }

    kindVariable(index) { return "kind-" + data.kinds[index].replace(" ", "-"); }

    // Nanoseconds to pixels and back.
    x(time) { return gutter + (time - this.from) / (this.to - this.from) * this.plot; }
    time(x) { return this.from + (x - gutter) / this.plot * (this.to - this.from); }

    show(from, to) {
      const span = Math.min(this.whole, Math.max(to - from, Math.min(100, this.whole)));
      this.from = Math.min(Math.max(0, from), this.whole - span);
      this.to = this.from + span;
      this.tip.hidden = true;
      this.draw();
    }

    zoom(factor, around) {
      this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
    }

    listen() {
      const canvas = this.canvas;
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && document.activeElement !== canvas) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(event.offsetX));
      }, { passive: false });
      canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        this.drag = { x: event.offsetX, from: this.from, to: this.to };
      });
      canvas.addEventListener("pointerup", () => { this.drag = null; });
      canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
      canvas.addEventListener("pointermove", (event) => {
        if (!this.drag) return this.point(event.offsetX, event.offsetY);
        const moved = (this.drag.x - event.offsetX) / this.plot * (this.drag.to - this.drag.from);
        this.show(this.drag.from + moved, this.drag.to + moved);
      });
      canvas.addEventListener("keydown", (event) => this.key(event));
    }

    key(event) {
      const span = this.to - this.from;
      const middle = (this.from + this.to) / 2;
      const actions = {
        "+": () => this.zoom(0.5, middle),
        "-": () => this.zoom(2, middle),
        "0": () => this.show(0, this.whole),
        ArrowLeft: () => this.show(this.from - span / 5, this.to - span / 5),
        ArrowRight: () => this.show(this.from + span / 5, this.to + span / 5),
      };
      if (!actions[event.key]) return;
      event.preventDefault();
      actions[event.key]();
    }

    draw() {
      const width = this.canvas.clientWidth;
      if (width === 0) return;
      const ratio = devicePixelRatio || 1;
      const pixels = [Math.round(width * ratio), Math.round(this.height * ratio)];
      if (this.canvas.width !== pixels[0] || this.canvas.height !== pixels[1]) {
        [this.canvas.width, this.canvas.height] = pixels;
        this.canvas.style.height = `${this.height}px`;
      }
      this.plot = Math.max(1, width - gutter - edge);
      const ctx = this.canvas.getContext("2d");
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, width, this.height);
      ctx.font = font;
      ctx.textBaseline = "middle";
      this.drawAxis(ctx);
      for (const one of this.timeline.classes) {
        if (one.passes.length > 0) passLane.draw(this, ctx, one, one.row, gutter);
        this.drawLanes(ctx, one);
        linkTracks.draw(this, ctx, one, gutter);
        if (one.memory.length > 0) this.drawMemory(ctx, one);
      }
    }

    drawAxis(ctx) {
      const step = tickStep(this.to - this.from, Math.max(2, this.plot / 110));
      const [unit, factor] = axisUnit(this.to / 1e9, timeUnits);
      ctx.textAlign = "center";
      ctx.lineWidth = 1;
      for (let tick = Math.ceil(this.from / step) * step; tick <= this.to; tick += step) {
        const x = Math.round(this.x(tick)) + 0.5;
        ctx.strokeStyle = color("grid");
        ctx.beginPath();
        ctx.moveTo(x, axisHeight - 4);
        ctx.lineTo(x, this.height - gap);
        ctx.stroke();
        ctx.fillStyle = color("quiet");
        ctx.fillText(`${+(tick / 1e9 / factor).toPrecision(7)} ${unit}`, x, 9);
      }
    }

    drawLanes(ctx, one) {
      const colors = data.kinds.map((_, index) => color(this.kindVariable(index)));
      const several = this.timeline.classes.length > 1;
      one.shown.forEach((stream, lane) => {
        const y = one.lanes + laneHeight * lane;
        ctx.fillStyle = color("ink");
        ctx.textAlign = "left";
        const name = one.streams[stream];
        const text = several ? `${one.name}: ${name}` : name;
        ctx.fillText(text, 0, y + laneHeight / 2, gutter - 8);
        ctx.fillStyle = color("grid");
        ctx.fillRect(gutter, y + laneHeight - 2, this.plot, 1);
      });
      this.clip(ctx, one.lanes, laneHeight * one.shown.length, () => {
        for (const segment of one.segments) this.drawSegment(ctx, one, segment, colors);
      });
    }

    drawSegment(ctx, one, segment, colors) {
      const [start, length, stream, kind] = segment;
      if (start > this.to || start + length < this.from) return;
      const x = this.x(start);
      const width = Math.max(0.6, this.x(start + length) - x);
      const y = one.lanes + laneHeight * one.shown.indexOf(stream) + 2;
      ctx.fillStyle = colors[kind];
      // A hairline between neighbours, where there is room for one.
      ctx.fillRect(x, y, width > 3 ? width - 1 : width, laneHeight - 5);
      const from = Math.max(x, gutter);
      const visible = Math.min(x + width, gutter + this.plot) - from;
      if (visible < 56) return;
      const text = nameOf(this.timeline, segment);
      const short = this.shorten(ctx, text, visible - 10);
      ctx.fillStyle = inkOn(colors[kind]);
      ctx.textAlign = "left";
      ctx.fillText(short, from + 5, y + (laneHeight - 5) / 2);
    }

    // The end of a name says more than its beginning.
    shorten(ctx, text, room) {
      if (ctx.measureText(text).width <= room) return text;
      const keep = Math.floor(text.length * room / ctx.measureText(text).width) - 1;
      return keep < 4 ? "" : "…" + text.slice(-keep);
    }

    clip(ctx, y, height, action) {
      ctx.save();
      ctx.beginPath();
      ctx.rect(gutter, y, this.plot, height);
      ctx.clip();
      action();
      ctx.restore();
    }

    drawMemory(ctx, one) {
      const capacity = this.configuration.capacity_bytes;
      const top = Math.max(capacity, one.peak_bytes) * 1.08;
      const base = one.graph + memoryHeight;
      const y = (bytes) => base - bytes / top * memoryHeight;
      const unit = axisUnit(top, byteUnits);
      this.drawMemoryAxis(ctx, top, y, unit);
      this.clip(ctx, one.graph, memoryHeight, () => {
        let floor = one.memory.map(() => 0);
        data.categories.forEach((category, index) => {
          if (!one.memory.some((row) => row[index + 1] > 0)) return;
          const ceiling = one.memory.map((row, i) => floor[i] + row[index + 1]);
          this.fillBand(ctx, one.memory, floor, ceiling, y, color("category-" + category.key));
          floor = ceiling;
        });
        this.drawCapacity(ctx, capacity, y(capacity), unit);
        this.drawPeak(ctx, one, y(one.peak_bytes), unit);
      });
    }

    drawMemoryAxis(ctx, top, y, [name, factor]) {
      const step = tickStep(top / factor, 4) * factor;
      ctx.textAlign = "right";
      for (let bytes = 0; bytes <= top; bytes += step) {
        ctx.fillStyle = color("quiet");
        const text = bytes === 0 ? "0" : `${+(bytes / factor).toPrecision(3)} ${name}`;
        ctx.fillText(text, gutter - 8, y(bytes));
        ctx.fillStyle = color("grid");
        ctx.fillRect(gutter, Math.round(y(bytes)), this.plot, 1);
      }
    }

    // Memory changes in steps: a sample holds until the next.
    fillBand(ctx, rows, floor, ceiling, y, fill) {
      ctx.beginPath();
      const outline = (heights, i) => {
        const right = i + 1 < rows.length ? rows[i + 1][0] : this.whole;
        return [[this.x(rows[i][0]), y(heights[i])], [this.x(right), y(heights[i])]];
      };
      for (let i = 0; i < rows.length; ++i) for (const p of outline(ceiling, i)) ctx.lineTo(...p);
      for (let i = rows.length - 1; i >= 0; --i) {
        for (const p of outline(floor, i).reverse()) ctx.lineTo(...p);
      }
      ctx.fillStyle = fill;
      ctx.fill();
    }

    drawCapacity(ctx, capacity, y, unit) {
      ctx.strokeStyle = ctx.fillStyle = color("ink");
      ctx.lineWidth = 1.5;
      ctx.setLineDash([5, 4]);
      ctx.beginPath();
      ctx.moveTo(gutter, y);
      ctx.lineTo(gutter + this.plot, y);
      ctx.stroke();
      ctx.setLineDash([]);
      this.label(ctx, `capacity ${inUnit(capacity, unit)}`, gutter + this.plot - 6, y + 11, "right");
    }

    drawPeak(ctx, one, y, unit) {
      const x = this.x(one.peak_ns);
      ctx.fillStyle = color("ink");
      ctx.beginPath();
      ctx.arc(x, y, 4, 0, 2 * Math.PI);
      ctx.fill();
      const right = x > gutter + this.plot / 2;
      this.label(ctx, `peak ${inUnit(one.peak_bytes, unit)}`, x + (right ? -10 : 10), y - 2,
                 right ? "right" : "left");
    }

    // Text on a plate of the panel's colour: readable on any band.
    label(ctx, text, x, y, align) {
      const width = ctx.measureText(text).width + 8;
      ctx.fillStyle = color("panel");
      ctx.globalAlpha = 0.85;
      ctx.fillRect(align === "right" ? x - width + 4 : x - 4, y - 9, width, 18);
      ctx.globalAlpha = 1;
      ctx.fillStyle = color("ink");
      ctx.textAlign = align;
      ctx.fillText(text, x, y);
    }

    // What is under the pointer, in words.
    point(x, y) {
      const text = x < gutter ? "" : this.textAt(this.time(x), y);
      this.tip.hidden = text === "";
      if (this.tip.hidden) return;
      this.tip.textContent = text;
      const left = Math.min(x + 14, this.canvas.clientWidth - this.tip.offsetWidth);
      this.tip.style.left = `${Math.max(0, left)}px`;
      this.tip.style.top = `${this.canvas.offsetTop + y + 18}px`;
    }

    textAt(time, y) {
      for (const one of this.timeline.classes) {
        if (one.passes.length > 0 && y >= one.row && y < one.row + passLane.height) {
          return passLane.text(one, time, (this.to - this.from) / this.plot);
        }
        const lane = Math.floor((y - one.lanes) / laneHeight);
        if (lane >= 0 && lane < one.shown.length) {
          return this.segmentText(one, one.shown[lane], time);
        }
        const track = Math.floor((y - one.tracks) / linkTracks.height);
        if (track >= 0 && track < one.links.length) {
          return linkTracks.text(one.links[track], time, this.whole);
        }
        const inGraph = y >= one.graph && y < one.graph + memoryHeight;
        if (inGraph && one.memory.length > 0) return this.memoryText(one, time);
      }
      return "";
    }

    segmentText(one, wanted, time) {
      const pixel = (this.to - this.from) / this.plot;
      const found = one.segments.find(([start, length, stream]) =>
        stream === wanted && time >= start - pixel && time <= start + length + pixel);
      if (!found) return "";
      const [start, length, , kind, , , tasks, busy] = found;
      const lines = [nameOf(this.timeline, found), data.kinds[kind],
                     `at ${formatSeconds(start / 1e9)}, for ${formatSeconds(length / 1e9)}`];
      if (tasks > 1) lines.push(`${tasks} tasks, ${formatSeconds(busy / 1e9)} together`);
      return lines.join("\n");
    }

    memoryText(one, time) {
      let row = one.memory[0];
      for (const sample of one.memory) if (sample[0] <= time) row = sample;
      const total = row.slice(1).reduce((a, b) => a + b, 0);
      const parts = data.categories.map((category, index) => [category.label, row[index + 1]])
        .filter(([, bytes]) => bytes > 0)
        .map(([label, bytes]) => `${label}: ${formatBytes(bytes)}`);
      return [`at ${formatSeconds(row[0] / 1e9)}: ${formatBytes(total)}`, ...parts].join("\n");
    }
  }

  for (const figure of document.querySelectorAll(".step-view")) {
    new StepView(figure, data.configurations[Number(figure.dataset.configuration)]);
  }
})();
