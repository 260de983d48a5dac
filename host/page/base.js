'use strict';
// What all sections use: elements, numbers as people read them, and the box that tells about what was chosen. Names come
// from files that nobody has vouched for: they become text, never markup.

const data = JSON.parse(document.getElementById('data').textContent);
const SVG = document.querySelector('svg').namespaceURI;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter(child => child !== undefined && child !== null));
  return node;
}
const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const shape = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

const grouped = number => Math.round(number).toLocaleString('en-US');
const count = (number, one) => `${grouped(number)} ${one}${number === 1 ? '' : 's'}`;
const percent = share => `${(share * 100).toFixed(share < 0.1 ? 2 : 1)} %`;

function bytes(number) {
  if (number < 1024) return `${number} B`;
  let value = number / 1024, unit = 0;
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  return `${value.toFixed(value < 10 ? 2 : 1)} ${['KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
}

function time(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(3)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toFixed(3)} ms`;
  return `${(seconds * 1e6).toFixed(seconds < 1e-5 ? 2 : 1)} µs`;
}

const fileName = path => String(path ?? '').replace(/.*\//, '');

/// A part of the page, with a link to it at the top.
function section(id, title, note, ...content) {
  document.querySelector('nav').append(el('a', {href: '#' + id}, title));
  const node = el('section', {id}, el('h2', {}, title), note ? el('p', {class: 'note'}, note) : undefined, ...content);
  document.querySelector('main').append(node);
  return node;
}

/// Names and values.
function facts(pairs) {
  const rows = pairs.filter(([, value]) => value !== undefined && value !== '')
      .map(([name, value]) => el('tr', {}, el('th', {scope: 'row'}, name), el('td', {}, String(value))));
  return el('table', {class: 'facts'}, el('tbody', {}, ...rows));
}

/// Columns are [title, whether it holds numbers, whether a narrow screen leaves it out]; rows are lists of texts or nodes.
function table(columns, rows) {
  const css = ([, number, wide]) => [number ? 'n' : '', wide ? 'wide' : ''].join(' ').trim() || undefined;
  const head = columns.map(column => el('th', {scope: 'col', class: css(column)}, column[0]));
  const body = rows.map(row => el('tr', {}, ...row.map((cell, i) => el('td', {class: css(columns[i])}, cell))));
  return el('div', {class: 'scroll', tabindex: '0'}, el('table', {}, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...body)));
}

function legend(entries) {
  return el('div', {class: 'legend'}, ...entries.map(([letter, text]) => el('span', {}, el('i', {class: 'f' + letter}), text)));
}

// ---- What is chosen -----------------------------------------------------------------------------

const told = document.querySelector('.told');

/// Lines of text in the box below, with buttons that lead elsewhere.
function tell(lines, buttons = []) {
  told.replaceChildren(el('pre', {}, lines.join('\n')), el('div', {class: 'tools'},
    ...buttons.map(([text, action]) => el('button', {class: 'tool', type: 'button', click: action}, text)),
    el('button', {class: 'tool', type: 'button', click: () => { told.hidden = true; }}, 'close')));
  told.hidden = false;
}

/// Choosing `node`, by a click, a tap or a key, does `action`. In a picture arrow keys go from one to the next.
function tells(node, action) {
  node.classList.add('tells');
  node.telling = action;
  node.addEventListener('click', event => { event.stopPropagation(); choose(node); });
  return node;
}

function choose(node) {
  document.querySelectorAll('.chosen').forEach(other => other.classList.remove('chosen'));
  node.classList.add('chosen');
  node.telling();
}

function keysInPicture(event) {
  const all = [...event.currentTarget.querySelectorAll('.tells')];
  const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
  if (!step || all.length === 0) return;
  event.preventDefault();
  const at = all.findIndex(node => node.classList.contains('chosen'));
  choose(all[at < 0 ? 0 : (at + step + all.length) % all.length]);
}

document.addEventListener('keydown', event => { if (event.key === 'Escape') told.hidden = true; });
