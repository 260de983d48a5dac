// Sections about a model file.

const CATEGORIES = {matrix: ['a', 'matrices'], attention: ['b', 'attention'], norm: ['c', 'norms'], memory: ['d', 'memories'],
                    embedding: ['e', 'embedding'], other: ['f', 'other']};
const ROLES = {rows: ['d', 'rows'], keys: ['a', 'keys'], values: ['b', 'values']};
const SHOWN_TENSORS = 200;

const letterOf = step => (CATEGORIES[step.category] ?? CATEGORIES.other)[0];
const shapeText = tensor => `[${tensor.rows_symbol ?? tensor.rows}, ${tensor.width}]`;
const typeText = tensor => tensor.type + (tensor.scale_groups > 1 ? ` x${tensor.scale_groups}` : '');

class ModelSections {
  constructor(model, index, several) {
    this.model = model;
    this.id = name => `m${index}-${name}`;
    this.suffix = several ? ': ' + fileName(model.path) : '';
    // Tensors by their places in the list: names may repeat.
    this.tensors = model.tensors;
    // Steps of all entry points in one line, as lifetimes count them; who makes and who reads a tensor.
    this.steps = model.entry_points.flatMap((entry, e) => entry.steps.map((step, s) => ({...step, entry: e, index: s})));
    this.makers = new Map();
    this.readers = new Map();
    this.steps.forEach((step, i) => {
      step.output_tensors.forEach(t => { if (!this.makers.has(t)) this.makers.set(t, i); });
      step.input_tensors.forEach(t => this.readers.set(t, [...(this.readers.get(t) ?? []), i]));
    });
  }

  build() {
    this.cards();
    this.about();
    this.errors();
    this.arena();
    this.plan();
    this.states();
    this.layers();
    this.graph();
    this.table();
  }

  section(name, title, note, ...content) { return section(this.id(name), title + this.suffix, note, ...content); }

  cards() {
    const m = this.model, card = (value, label) => el('div', {class: 'card'}, el('b', {}, value), el('span', {}, label));
    const before = m.sizes?.checkpoint_bytes;
    const cards = [card(grouped(m.parameters), 'parameters'),
                   card(bytes(m.file.bytes), before ? `file, from ${bytes(before)}` : 'file'),
                   card(bytes(m.arena.total), 'arena of one session'),
                   card(grouped(m.max_segment), 'most tokens per run')];
    for (const entry of m.entry_points) {
      cards.push(card(grouped(entry.macs_per_token), 'MACs per token' + (m.entry_points.length > 1 ? ', ' + entry.name : '')));
    }
    for (const output of ['logits', 'output']) {
      const cosine = m.quality?.[output + '_cosine'];
      if (cosine !== undefined) cards.push(card(String(cosine), output + ' cosine against f32'));
    }
    document.querySelector('main').append(el('div', {class: 'cards'}, ...cards));
  }

  about() {
    const m = this.model, part = (title, pairs) => el('div', {}, el('h3', {}, title), facts(pairs));
    const columns = [part('File', [['path', m.path], ['architecture', m.architecture], ['task', m.task], ['tokenizer', m.tokenizer],
                                   ['vocabulary', grouped(m.vocabulary)], ['licence', m.licence || 'not stated'], ['converter', m.converter],
                                   ['hash', m.hash], ['source SHA-256', m.source_hash]]),
                     part('Settings', Object.entries(m.settings)), part('Sizes', Object.entries(m.sizes))];
    if (Object.keys(m.quality).length > 0) columns.push(part('Quality, beside the float model', Object.entries(m.quality)));
    this.section('about', 'About the file', '', el('div', {class: 'columns'}, ...columns));
  }

  errors() {
    const list = this.model.weight_errors;
    if (!list?.length) return;
    const spent = list[0].loss !== undefined, types = new Map(this.model.tensors.map(tensor => [tensor.name, tensor.type]));
    const text = weight => `${(weight.error * 100).toFixed(3)} %` + (spent ? `, ${types.get(weight.name)}, ${weight.loss?.toPrecision(3) ?? ''}` : '');
    this.section('errors', spent ? 'Matrices' : 'Worst weights', 'Relative RMS error after rounding' +
      (spent ? ', type, and the loss by this one alone, as --budget estimated it.' : '.'), bars(list.map(weight => ({
      name: weight.name, parts: [[weight.error, 'a']], text: text(weight),
      tell: () => this.selectNamed(weight.name)}))));
  }

  arena() {
    const arena = this.model.arena;
    const parts = [['states', 'd'], ['activations', 'a'], ['scratch', 'c'], ['session', 'f']];
    this.section('arena', 'Arena', `What one session needs, known before the first token: ${bytes(arena.total)}.`,
      el('div', {class: 'stack'}, ...parts.map(([name, letter]) =>
          el('i', {class: 'f' + letter, style: `width:${100 * arena[name] / Math.max(1, arena.total)}%`, 'data-value': arena[name]}))),
      legend(parts.map(([name, letter]) => [letter, `${name} ${bytes(arena[name])}`])));
  }

  plan() {
    const m = this.model, planned = [...m.tensors.keys()].filter(t => m.tensors[t].first_step !== undefined);
    if (planned.length === 0) return;
    const most = Math.max(1, ...planned.map(t => m.tensors[t].offset + m.tensors[t].bytes)), steps = Math.max(1, this.steps.length);
    const draw = width => {
      const height = 360, left = 74, top = 12, bottom = height - 26;
      const {nodes, y} = valueAxis(most, bytes, left, width, top, bottom);
      const x = step => left + (width - left) * step / steps;
      for (const t of planned) {
        const tensor = m.tensors[t], maker = this.makers.get(t);
        nodes.push(tells(shape('rect', {class: 'f' + (maker === undefined ? 'f' : letterOf(this.steps[maker])), x: x(tensor.first_step),
          y: y(tensor.offset + tensor.bytes), width: x(tensor.last_step + 1) - x(tensor.first_step),
          height: Math.max(0.5, y(tensor.offset) - y(tensor.offset + tensor.bytes)), 'data-tensor': t}),
          () => this.select(t)));
      }
      let first = 0;
      for (const entry of m.entry_points) {
        nodes.push(shape('line', {class: 'grid', x1: x(first), x2: x(first), y1: top, y2: bottom}),
                   shape('text', {class: 'soft', x: x(first), y: height - 8}, `${entry.name}, ${count(entry.steps.length, 'step')}`));
        first += entry.steps.length;
      }
      return picture(width, height, 'memory plan', ...nodes);
    };
    this.section('plan', 'Memory plan', `Activations of the longest run: steps to the right, bytes upwards. ${bytes(m.arena.activations)} hold ` +
      `what would be ${bytes(m.activations_side_by_side)} side by side.`, zoomed('memory plan', draw), this.colours());
  }

  colours() { return legend(Object.values(CATEGORIES)); }

  states() {
    const rings = new Map();
    this.tensors.forEach((tensor, t) => {
      const name = tensor.ring ?? tensor.name;
      if (tensor.kind === 'State') rings.set(name, [...(rings.get(name) ?? []), t]);
    });
    if (rings.size === 0) return;
    this.section('states', 'States', 'Memories that live from run to run. Their size never changes with the stream.',
      bars([...rings].map(([name, list]) => ({
        name, parts: list.map(t => [this.tensors[t].bytes, ROLES[this.tensors[t].role][0]]),
        text: `${bytes(list.reduce((all, t) => all + this.tensors[t].bytes, 0))}, ${count(this.tensors[list[0]].rows, 'row')}`,
        tell: () => tell(list.map(t => this.describe(t)), list.slice(0, 4).map(t => [this.tensors[t].name, () => this.select(t)]))}))),
      legend(Object.values(ROLES)));
  }

  /// Steps by layer: [{title, steps: [places in this.steps]}] of an entry point.
  groups(entry) {
    const out = [];
    this.steps.forEach((step, i) => {
      if (step.entry !== entry) return;
      const title = step.layer !== undefined ? `Layer ${step.layer}` : out.length === 0 || out.at(-1).title === 'Input' ? 'Input' : 'Output';
      if (out.at(-1)?.title === title) out.at(-1).steps.push(i);
      else out.push({title, steps: [i]});
    });
    return out;
  }

  layers() {
    const rows = [], counted = new Set();
    this.model.entry_points.forEach((entry, e) => {
      for (const group of this.groups(e)) {
        let weights = 0, macs = 0;
        for (const i of group.steps) {
          macs += this.steps[i].macs_per_token;
          for (const t of this.steps[i].input_tensors) {
            if (this.tensors[t].kind !== 'Weight' || counted.has(t)) continue;
            counted.add(t);
            weights += this.tensors[t].bytes;
          }
        }
        rows.push({title: (this.model.entry_points.length > 1 ? entry.name + ', ' : '') + group.title, weights, macs, steps: group.steps.length});
      }
    });
    const list = (key, letter, text) => bars(rows.map(row => ({name: row.title, parts: [[row[key], letter]], text: text(row[key]),
      tell: () => tell([row.title, `weights ${bytes(row.weights)}`, `${grouped(row.macs)} MACs per token`, count(row.steps, 'step')])})));
    this.section('layers', 'Size and work by layer', 'Weights count where they are read first.',
      el('div', {class: 'columns'}, el('div', {'data-list': 'weights'}, el('h3', {}, 'Weights'), list('weights', 'a', bytes)),
         el('div', {'data-list': 'macs'}, el('h3', {}, 'MACs per token'), list('macs', 'b', grouped))));
  }

  graph() {
    const content = [this.colours()];
    this.model.entry_points.forEach((entry, e) => {
      const takes = entry.inputs.map(input => input.name).join(', ');
      content.push(el('h3', {}, `${entry.name}: ${takes} to ${entry.output} [${entry.output_width}]`));
      let layerShown = false;
      for (const group of this.groups(e)) {
        const isLayer = group.title.startsWith('Layer');
        const holder = el('div', {class: 'steps'});
        const details = el('details', {}, el('summary', {}, group.title + ' ', el('span', {}, count(group.steps.length, 'step'))), holder);
        // Rows are made when they are looked at.
        const show = () => {
          if (holder.childElementCount === 0) holder.append(shape('svg', {'aria-hidden': 'true'}), ...group.steps.map(i => this.row(i)));
        };
        details.addEventListener('toggle', () => { if (details.open) { show(); this.arcs(holder, group); } });
        new ResizeObserver(() => { if (details.open) { show(); this.arcs(holder, group); } }).observe(holder);
        group.open = () => { details.open = true; show(); };
        group.steps.forEach(i => { this.steps[i].open = group.open; });
        // One open layer tells how all of them are built.
        if (!isLayer || !layerShown) group.open();
        layerShown = layerShown || isLayer;
        content.push(details);
      }
    });
    this.section('graph', 'Graph', 'Steps in the order they run. Arcs lead from where a tensor is made to where it is read; choose a step for details.',
                 ...content);
  }

  row(i) {
    const step = this.steps[i], first = this.tensors[step.output_tensors[0]];
    const row = el('div', {class: `step c${letterOf(step)}`, id: this.id(`step${i}`), role: 'button', tabindex: '0', 'data-step': i,
      keydown: event => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(row); } }},
      el('b', {}, step.op), el('span', {class: 'mono'}, step.outputs.join(', ')),
      el('span', {class: 'mono soft'}, first ? `${typeText(first)} ${shapeText(first)}` : ''), el('span', {class: 'soft'}, step.options));
    return tells(row, () => {
      const places = [...new Set([...step.output_tensors, ...step.input_tensors])];
      const list = (what, all) => all.map(t => `${what} ${this.describe(t)}`);
      tell([`step ${step.index}: ${step.op}${step.options ? ` (${step.options})` : ''}`, `${grouped(step.macs_per_token)} MACs per token`,
            ...list('writes', step.output_tensors), ...list('reads', step.input_tensors)],
           places.slice(0, 8).map(t => [this.tensors[t].name, () => this.select(t)]));
    });
  }

  arcs(holder, group) {
    const svg = holder.querySelector('svg'), width = parseFloat(getComputedStyle(holder).paddingLeft) - 2;
    const rows = new Map([...holder.querySelectorAll('.step')].map(row => [Number(row.dataset.step), row.offsetTop + row.offsetHeight / 2]));
    svg.setAttribute('width', width);
    svg.setAttribute('height', holder.offsetHeight);
    const madeAt = new Map(), paths = [];
    for (const i of group.steps) {
      this.steps[i].input_tensors.forEach((t, port) => {
        if (!madeAt.has(t)) return;
        const from = rows.get(madeAt.get(t)) + 3, to = rows.get(i) - 3 + 2 * port;
        const reach = Math.max(4, width - Math.min(width - 4, 14 + 8 * (i - madeAt.get(t))));
        paths.push(shape('path', {class: `arc s${letterOf(this.steps[madeAt.get(t)])}`, d: `M${width} ${from}C${reach} ${from} ${reach} ${to} ${width} ${to}`}));
      });
      this.steps[i].output_tensors.forEach(t => { if (this.tensors[t].kind !== 'State') madeAt.set(t, i); });
    }
    svg.replaceChildren(...paths);
  }

  table() {
    const state = {key: 'bytes', down: true, words: '', shown: SHOWN_TENSORS};
    const columns = [['name', 'name'], ['kind', 'kind', 'wide'], ['type', 'type', 'wide'], ['shape', 'shape', 'wide'], ['bytes', 'bytes', 'n']];
    const value = (tensor, key) => key === 'shape' ? tensor.rows * tensor.width : key === 'type' ? typeText(tensor) : tensor[key];
    const body = el('tbody'), told = el('p', {class: 'note', role: 'status'}), more = el('button', {class: 'tool', type: 'button'}, 'more');
    const heads = columns.map(([key, title, css]) => el('th', {scope: 'col', class: css}, el('button', {type: 'button', 'data-sort': key, click: () => {
      state.down = state.key === key ? !state.down : key === 'bytes' || key === 'shape';
      state.key = key;
      show();
    }}, title)));
    const show = () => {
      const words = state.words.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = [...this.tensors.keys()].filter(t => {
        const tensor = this.tensors[t];
        const text = `${tensor.name} ${tensor.kind} ${typeText(tensor)}`.toLowerCase();
        return words.every(word => text.includes(word));
      });
      fits.sort((a, b) => {
        const x = value(this.tensors[a], state.key), y = value(this.tensors[b], state.key), order = x < y ? -1 : x > y ? 1 : 0;
        return state.down ? -order : order;
      });
      body.replaceChildren(...fits.slice(0, state.shown).map(t => [t, this.tensors[t]]).map(([t, tensor]) => el('tr', {'data-tensor': t},
        el('td', {}, tells(el('button', {type: 'button', class: 'mono'}, tensor.name), () => this.select(t))),
        el('td', {class: 'wide'}, tensor.kind), el('td', {class: 'wide'}, typeText(tensor)), el('td', {class: 'wide'}, shapeText(tensor)),
        el('td', {class: 'n'}, bytes(tensor.bytes)))));
      heads.forEach((head, i) => head.setAttribute('aria-sort', columns[i][0] !== state.key ? 'none' : state.down ? 'descending' : 'ascending'));
      told.textContent = `${count(fits.length, 'tensor')}, ${bytes(fits.reduce((all, t) => all + this.tensors[t].bytes, 0))}`;
      more.hidden = fits.length <= state.shown;
    };
    const search = el('input', {type: 'search', placeholder: 'search names, kinds and types', 'aria-label': 'search tensors',
                                input: event => { state.words = event.target.value; show(); }});
    more.addEventListener('click', () => { state.shown *= 4; show(); });
    this.find = name => { search.value = state.words = name; show(); };
    this.section('tensors', 'Tensors', '', el('div', {class: 'tools'}, search), told,
                 el('div', {class: 'scroll'}, el('table', {}, el('thead', {}, el('tr', {}, ...heads)), body)), more);
    show();
  }

  describe(t) {
    const tensor = this.tensors[t];
    return `${tensor.name}  ${typeText(tensor)} ${shapeText(tensor)}, ${bytes(tensor.bytes)}`;
  }

  selectNamed(name) {
    const t = this.tensors.findIndex(tensor => tensor.name === name);
    if (t < 0) tell([name]);
    else this.select(t);
  }

  /// Marks a tensor wherever it is, tells about it, and offers the ways to where it is.
  select(t) {
    const tensor = this.tensors[t], marked = `[id^="${this.id('')}"] [data-tensor="${t}"]`;
    document.querySelectorAll('.named').forEach(node => node.classList.remove('named'));
    document.querySelectorAll(marked).forEach(node => node.classList.add('named'));
    const lines = [this.describe(t), `kind ${tensor.kind}, at ${grouped(tensor.offset)}`];
    if (tensor.first_step !== undefined) lines.push(`lives in steps ${tensor.first_step} to ${tensor.last_step}`);
    const buttons = [], goto = i => () => {
      this.steps[i].open();
      const row = document.getElementById(this.id(`step${i}`));
      row.classList.add('named');
      row.scrollIntoView({block: 'center'});
      row.focus({preventScroll: true});
    };
    const maker = this.makers.get(t), readers = this.readers.get(t) ?? [];
    if (maker !== undefined) buttons.push([`made by ${this.steps[maker].op}`, goto(maker)]);
    readers.slice(0, 4).forEach(i => buttons.push([`read by ${this.steps[i].op}`, goto(i)]));
    if (tensor.first_step !== undefined) {
      buttons.push(['memory plan', () => document.getElementById(this.id('plan')).scrollIntoView()]);
    }
    buttons.push(['table', () => {
      this.find(tensor.name);
      document.querySelectorAll(marked).forEach(node => node.classList.add('named'));
      document.getElementById(this.id('tensors')).scrollIntoView();
    }]);
    tell(lines, buttons);
  }
}
