// The passes of microbatches through each stage, forward and backward: bars with the microbatch's
// number, stage beneath stage, at the top of the step view.
"use strict";

shardsim.passLane = (() => {
  const { color, formatSeconds, inkOn } = shardsim;
  const height = 22;
  const space = 4;  // below the bars
  const colors = {
    "forward": "kind-forward", "backward": "kind-backward", "backward-input": "kind-backward",
    "backward-weight": "kind-recompute",
  };

  function draw(view, ctx, one, top, gutter) {
    ctx.fillStyle = color("ink");
    ctx.textAlign = "left";
    ctx.fillText(one.name === "all" ? "microbatches" : one.name, 0, top + (height - space) / 2, gutter - 8);
    view.clip(ctx, top, height, () => {
      ctx.textAlign = "center";
      for (const [start, length, microbatch, phase] of one.passes) {
        if (start > view.to || start + length < view.from) continue;
        const x = view.x(start);
        const width = Math.max(0.6, view.x(start + length) - x);
        const fill = color(colors[phase]);
        ctx.fillStyle = fill;
        ctx.fillRect(x, top, width > 3 ? width - 1 : width, height - space);
        const number = String(microbatch);
        const from = Math.max(x, gutter);
        const visible = Math.min(x + width, gutter + view.plot) - from;
        if (visible < ctx.measureText(number).width + 3) continue;
        ctx.fillStyle = inkOn(fill);
        ctx.fillText(number, from + visible / 2, top + (height - space) / 2);
      }
    });
  }

  // The pass at `time`, in words.
  function text(one, time, pixel) {
    const found = one.passes.find(([start, length]) =>
      time >= start - pixel && time <= start + length + pixel);
    if (!found) return "";
    const [start, length, microbatch, phase, first, last] = found;
    const layers = first < 0 ? "" : `, layers ${first} to ${last}`;
    return `microbatch ${microbatch}, ${phase}${layers}\n` +
      `at ${formatSeconds(start / 1e9)}, for ${formatSeconds(length / 1e9)}`;
  }

  return { height, draw, text };
})();
