// What the devices of a class take of links during a step: of every level a track in the step view,
// as high as all of its bandwidth.
"use strict";

shardsim.linkTracks = (() => {
  const { color, formatSeconds } = shardsim;
  const height = 34;  // of a track
  const space = 6;    // below it

  function drawOne(view, ctx, link, top, gutter) {
    const base = top + height - space;
    const full = base - top - 2;
    ctx.fillStyle = color("ink");
    ctx.textAlign = "left";
    ctx.fillText(link.name, 0, (top + base) / 2, gutter - 8);
    ctx.fillStyle = color("grid");
    ctx.fillRect(gutter, base - full - 1, view.plot, 1);
    ctx.fillRect(gutter, base, view.plot, 1);
    view.clip(ctx, top, height, () => {
      ctx.fillStyle = color("category-communication");
      const width = view.whole / link.permille.length;
      link.permille.forEach((taken, bin) => {
        const x = view.x(bin * width);
        const high = Math.min(1, taken / 1000) * full;
        if (high > 0) ctx.fillRect(x, base - high, view.x((bin + 1) * width) - x, high);
      });
    });
  }

  function draw(view, ctx, one, gutter) {
    one.links.forEach((link, i) => drawOne(view, ctx, link, one.tracks + height * i, gutter));
  }

  // At a time in nanoseconds, of `whole`.
  function text(link, time, whole) {
    const bins = link.permille.length;
    const bin = Math.min(bins - 1, Math.max(0, Math.floor(time / whole * bins)));
    const at = (edge) => formatSeconds(edge * whole / bins / 1e9);
    return `${link.name}\n${at(bin)} to ${at(bin + 1)}: ${link.permille[bin] / 10} % taken`;
  }

  return { height, draw, text };
})();
