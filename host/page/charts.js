// Pictures with axes. They are drawn for the width that there is, so that their words keep their size.

/// Calls draw(width) for what stands in the returned element, now and whenever its width is another.
function drawn(draw) {
  const holder = el('div', {class: 'drawn'});
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(holder.clientWidth);
    if (width === 0 || width === last) return;
    last = width;
    holder.replaceChildren(draw(width));
  }).observe(holder);
  return holder;
}

/// The same with buttons that make it wider than the page, in a part of the page that scrolls.
function zoomed(label, draw) {
  let factor = 1;
  const holder = el('div', {class: 'scroll', tabindex: '0', 'aria-label': label});
  const redraw = () => { if (holder.clientWidth > 0) holder.replaceChildren(draw(Math.floor(holder.clientWidth * factor))); };
  const zoom = change => () => { factor = Math.min(64, Math.max(1, change(factor))); redraw(); };
  new ResizeObserver(redraw).observe(holder);
  const tool = (text, name, change) =>
      el('button', {class: 'tool', type: 'button', 'aria-label': `${name}: ${label}`, 'data-zoom': name, click: zoom(change)}, text);
  return el('div', {}, el('div', {class: 'tools'}, tool('−', 'smaller', f => f / 2), tool('+', 'larger', f => f * 2),
                          tool('fit', 'fit', () => 1)), holder);
}

/// 1, 2 or 5 times a power of ten, so that about `parts` of them are `most`.
function niceStep(most, parts) {
  const raw = Math.max(most, 1e-12) / parts, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= raw * 0.999);
}

function picture(width, height, label, ...content) {
  return shape('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', tabindex: '0', 'aria-label': label,
                       keydown: keysInPicture}, ...content);
}

/// Lines across with their values; returns them and where a value is.
function valueAxis(most, text, left, right, top, bottom) {
  // Bytes have steps that are round in their own units.
  const unit = text === bytes && most >= 1024 ? 1024 ** Math.min(4, Math.floor(Math.log2(most) / 10)) : 1;
  const step = niceStep(most / unit, 4) * unit, end = Math.max(step, Math.ceil(most / step - 1e-9) * step);
  const y = value => bottom - (bottom - top) * value / end;
  const nodes = [];
  for (let i = 0; i * step <= end * 1.0001; ++i) {
    nodes.push(shape('line', {class: 'grid', x1: left, x2: right, y1: y(i * step), y2: y(i * step)}),
               shape('text', {class: 'soft ytick', x: left - 6, y: y(i * step) + 4, 'text-anchor': 'end', 'data-value': i * step},
                     text(i * step)));
  }
  return {nodes, y};
}

/// Lines over tokens: `series` of {css, name, points: [[token, value]]}.
function lineChart(label, series, text) {
  return drawn(width => {
    const height = Math.min(320, Math.max(220, width * 0.4)), left = 74, right = width - 14, top = 12, bottom = height - 28;
    const points = series.flatMap(one => one.points), tokens = Math.max(1, ...points.map(point => point[0]));
    const {nodes, y} = valueAxis(Math.max(...points.map(point => point[1])), text, left, right, top, bottom);
    const x = token => left + (right - left) * token / tokens;
    const step = niceStep(tokens, width < 500 ? 3 : 6);
    for (let token = 0; token <= tokens * 1.0001; token += step) {
      nodes.push(shape('text', {class: 'soft xtick', x: x(token), y: height - 8, 'data-value': token,
                                'text-anchor': token === 0 ? 'start' : x(token) > right - 30 ? 'end' : 'middle'}, grouped(token)));
    }
    for (const one of series) {
      nodes.push(shape('polyline', {class: one.css, 'data-name': one.name,
                                    points: one.points.map(([token, value]) => `${x(token).toFixed(2)},${y(value).toFixed(2)}`).join(' ')}));
    }
    return picture(width, height, label, ...nodes);
  });
}

/// Bars over bins of {from, to, count}, all equally wide: their edges are equally far apart as logarithms.
function histogram(label, bins) {
  return drawn(width => {
    const height = 220, left = 74, right = width - 14, top = 12, bottom = height - 28;
    const {nodes, y} = valueAxis(Math.max(...bins.map(bin => bin.count)), grouped, left, right, top, bottom);
    const each = (right - left) / bins.length, every = Math.ceil(86 / each);
    bins.forEach((bin, i) => {
      const x = left + each * i;
      if (i % every === 0 && x + 60 < right) nodes.push(shape('text', {class: 'soft', x, y: height - 8}, time(bin.from)));
      if (bin.count === 0) return;
      const tall = Math.max(1, bottom - y(bin.count));
      nodes.push(tells(shape('rect', {class: 'fa', x, y: bottom - tall, width: Math.max(1, each - 1), height: tall, 'data-count': bin.count}),
                       () => tell([`${time(bin.from)} to ${time(bin.to)}: ${grouped(bin.count)}`])));
    });
    return picture(width, height, label, ...nodes);
  });
}

/// A row for each of {name, parts: [[value, letter]], text, tell}: bars in proportion to the largest sum.
function bars(rows) {
  const sum = row => row.parts.reduce((all, [value]) => all + value, 0);
  const most = Math.max(1e-300, ...rows.map(sum));
  return el('div', {class: 'bars'}, ...rows.flatMap(row => {
    const parts = row.parts.map(([value, letter]) => el('i', {class: 'f' + letter, style: `width:${100 * value / most}%`, 'data-value': value}));
    const name = row.tell ? tells(el('button', {type: 'button', class: 'mono'}, row.name), row.tell) : el('span', {class: 'mono'}, row.name);
    return [el('div', {class: 'name'}, name), el('div', {class: 'track'}, ...parts), el('span', {class: 'n'}, row.text)];
  }));
}
