// Sections about what oxbow bench measured.

const benchName = bench => `${fileName(bench.model)}, ${bench.backend}, ${count(bench.threads, 'thread')}`;

/// Several measurements in one table.
function compareBenches(benches) {
  const cell = (value, text) => value === undefined ? '' : text(value);
  section('compare', 'Side by side', '', table(
    [['model'], ['backend', false, true], ['threads', true], ['prefill, tokens/s', true], ['decode, median', true], ['p99', true, true],
     ['arena', true, true], ['file', true, true]],
    benches.map(bench => [fileName(bench.model), bench.backend, String(bench.threads), cell(bench.prefill?.tokens_per_second, grouped),
      cell(bench.decode?.median_seconds, time), cell(bench.decode?.percentiles?.p99, time), bytes(bench.arena.total), bytes(bench.file_bytes)])));
  const measured = benches.filter(bench => bench.decode);
  if (measured.length > 1) {
    document.getElementById('compare').append(el('h3', {}, 'Time of a decoded token'), bars(measured.map(bench => ({
      name: benchName(bench), parts: [[bench.decode.median_seconds, 'a']], text: time(bench.decode.median_seconds)}))));
  }
}

class BenchSections {
  constructor(bench, index, several, models) {
    this.bench = bench;
    this.id = name => `b${index}-${name}`;
    this.suffix = several ? ': ' + benchName(bench) : '';
    this.model = models.find(model => model.model.path === bench.model);
  }

  build() {
    this.about();
    for (const [key, title] of [['prefill', 'Prefill'], ['decode', 'Decode']]) {
      if (this.bench[key]) this.timing(key, title);
    }
    if (this.bench.stream) this.stream();
    if (this.bench.profile) { this.profile(); this.timeline(); }
    if (this.bench.roofline) this.roofline();
    this.device();
  }

  section(name, title, note, ...content) { return section(this.id(name), title + this.suffix, note, ...content); }

  about() {
    const b = this.bench, d = b.device ?? {};
    const busy = b.other_cores === undefined ? undefined : `${Math.round(b.other_cores * 100)} % of a core for other programs`;
    this.section('bench', 'Measured', busy && b.other_cores >= 0.1 ? `This machine was busy: ${busy}. Times are to be doubted.` : '', facts([
      ['model', b.model], ['hash', b.hash], ['device', [d.model, d.soc, d.cpu, d.kernel].filter(Boolean).join(', ')],
      ['run with', `backend ${b.backend}, ${count(b.threads, 'thread')}` + (b.cpu_mask ? `, cores ${b.cpu_mask}` : '')],
      ['arena', bytes(b.arena.total)], ['backend memory', b.backend_bytes ? bytes(b.backend_bytes) : undefined],
      ['resident memory', bytes(b.resident) + (b.peak_memory ? `, at most ${bytes(b.peak_memory)}` : '')], ['machine', busy],
      ['involuntary switches', grouped(b.involuntary_switches)], ['took', `${time(b.seconds)} for ${count(b.tokens_fed, 'token')}`],
      ...(b.energy ?? []).map(one => ['energy, ' + one.name, `${one.joules.toFixed(3)} J`])]));
  }

  percentiles(p) {
    const names = [['p50', 'half'], ['p90', '90 %'], ['p95', '95 %'], ['p99', '99 %'], ['p999', '99.9 %'], ['max', 'all']];
    return el('div', {class: 'percentiles'}, bars(names.map(([key, text]) => ({name: text, parts: [[p[key], 'a']], text: time(p[key])}))));
  }

  timing(key, title) {
    const t = this.bench[key], per = key === 'prefill' ? 'run' : 'token';
    this.section(key, `${title}, ${count(t.tokens, 'token')}`, `${time(t.median_seconds)} per ${per}, the median of ${grouped(t.runs)}; ` +
      `${grouped(t.tokens_per_second)} tokens/s; fastest ${time(t.min_seconds)}; processor time ${time(t.processor_seconds)}` +
      (t.stopped_early ? '; ended early.' : '.'),
      el('div', {class: 'columns'}, el('div', {}, el('h3', {}, `So many ${per}s take at most`), this.percentiles(t.percentiles)),
         el('div', {}, el('h3', {}, `${per[0].toUpperCase()}${per.slice(1)}s by time`), histogram(`histogram of ${key}`, t.histogram))));
  }

  stream() {
    const s = this.bench.stream, ours = [], cache = [[0, s.resident_after_1000_tokens]], median = [], fastest = [];
    let token = 0;
    for (const block of s.blocks) {
      median.push([token + block.tokens / 2, block.median_seconds]);
      fastest.push([token + block.tokens / 2, block.min_seconds]);
      token += block.tokens;
      ours.push([token, block.resident]);
      cache.push([token, s.resident_after_1000_tokens + s.cache_bytes_per_token * token]);
    }
    const memory = [{css: 'sa', name: 'resident', points: ours}];
    if (s.cache_bytes_per_token > 0) memory.unshift({css: 'se', name: 'cache', points: cache});
    const turns = s.turns && `${s.turns.late_over_early_processor.toFixed(3)} by processor time, ${s.turns.late_over_early_clock.toFixed(3)} by the clock`;
    this.section('stream', `Stream, ${count(s.tokens, 'token')}`, '', facts([
      ['took', time(s.seconds) + (s.stopped_early ? ', ended early' : '')], ['input', `${s.input} (seed ${s.seed})`],
      ['late / early', turns], ['first tenth', `median ${time(s.first_tenth.median_seconds)}`], ['last tenth', `median ${time(s.last_tenth.median_seconds)}`],
      ['resident', `${bytes(s.resident_after_1000_tokens)} after 1,000 tokens, ${bytes(s.resident_at_end)} at the end`],
      ['anonymous', `${bytes(s.anonymous_after_1000_tokens)} after 1,000 tokens, ${bytes(s.anonymous_at_end)} at the end`],
      ['full KV cache', s.cache_bytes_per_token ? `${bytes(s.cache_bytes_per_token * s.tokens)} would be needed` : undefined],
      ['heap growth', s.heap_growth === undefined ? undefined : count(s.heap_growth, 'byte')]]),
      el('h3', {}, 'Memory over the stream'), lineChart('memory over the stream', memory, bytes),
      legend([['a', `the whole process: ${bytes(s.resident_at_end)}`], ...(s.cache_bytes_per_token
        ? [['e', `with a growing KV cache: ${bytes(s.resident_after_1000_tokens + s.cache_bytes_per_token * s.tokens)}`]] : [])]),
      el('h3', {}, 'Time per token over the stream'),
      lineChart('time per token over the stream', [{css: 'sf dashed', name: 'fastest', points: fastest}, {css: 'sa', name: 'median', points: median}], time),
      legend([['a', 'median of each stretch'], ['f', 'its fastest token']]),
      el('div', {class: 'columns'}, el('div', {}, el('h3', {}, 'So many tokens take at most'), this.percentiles(s.percentiles)),
         el('div', {}, el('h3', {}, 'Tokens by time'), histogram('histogram of the stream', s.histogram))));
  }

  profile() {
    const p = this.bench.profile, list = (key, letter) => {
      const sum = p.ops.reduce((all, op) => all + op[key], 0), ops = [...p.ops].sort((a, b) => b[key] - a[key]).filter(op => op[key] > 0);
      return bars(ops.map(op => ({name: op.op, parts: [[op[key], letter]], text: `${time(op[key])}, ${percent(op[key] / sum)}`,
                                  tell: () => tell([`${op.op}: ${count(op.steps, 'step')}`, `${time(op[key])}, ${percent(op[key] / sum)}`])})));
    };
    this.section('profile', 'Time per op', 'Medians of several runs, measured apart from the rest.', el('div', {class: 'columns'},
      el('div', {}, el('h3', {}, `Prefill of ${grouped(p.prefill_tokens)}`), list('prefill_seconds', 'b')),
      el('div', {}, el('h3', {}, 'Decode, per token'), list('decode_seconds', 'a'))));
  }

  /// Steps side by side in the order they run, as wide as they are long.
  timeline() {
    const p = this.bench.profile;
    const draw = (key, letters) => width => {
      const sum = p.steps.reduce((all, step) => all + step[key], 0) || 1, height = 74, nodes = [];
      const x = seconds => width * seconds / sum;
      let at = 0;
      p.steps.forEach((step, i) => {
        const seconds = step[key];
        if (seconds <= 0) return;
        const start = at;
        nodes.push(tells(shape('rect', {class: 'f' + letters(step), x: x(start), y: 4, width: x(seconds), height: 40, 'data-step': i, 'data-seconds': seconds}),
          () => tell([`step ${i}: ${step.op} ${step.output ?? ''}`, `${time(seconds)}, ${percent(seconds / sum)}, from ${time(start)} on`],
                     this.model && step.output ? [['tensor', () => this.model.selectNamed(step.output)]] : [])));
        at += seconds;
      });
      const tick = niceStep(sum, width < 500 ? 3 : 8);
      for (let seconds = 0; seconds <= sum * 1.0001; seconds += tick) {
        nodes.push(shape('text', {class: 'soft', x: x(seconds), y: height - 8, 'data-value': seconds,
                                  'text-anchor': seconds === 0 ? 'start' : x(seconds) > width - 30 ? 'end' : 'middle'}, time(seconds)));
      }
      return picture(width, height, 'timeline', ...nodes);
    };
    const categories = new Map((this.model?.steps ?? []).map(step => [step.op, letterOf(step)]));
    const letters = step => categories.get(step.op.split(' ')[0]) ?? 'f';
    const content = [['prefill_seconds', `Prefill of ${grouped(p.prefill_tokens)}`], ['decode_seconds', 'Decode, one token']]
        .filter(([key]) => p.steps.some(step => step[key] > 0))
        .flatMap(([key, title]) => [el('h3', {}, title), zoomed(title, draw(key, letters))]);
    this.section('timeline', 'Steps over time', 'Each step as wide as it is long.', ...content, legend(Object.values(CATEGORIES)));
  }

  /// Steps beside what the machine gives, the slowest first.
  roofline() {
    const {limits, other_cores: others, prefill, decode} = this.bench.roofline;
    const giga = value => value === undefined ? '' : (value / 1e9).toFixed(1);
    const rates = facts([
      ['tried', `${count(limits.threads, 'thread')}, ${time(limits.seconds)}`],
      ['int8 products', limits.int8_macs_per_second && `${giga(limits.int8_macs_per_second)} GMAC/s (${limits.instructions})`],
      ['float products', limits.float_macs_per_second && `${giga(limits.float_macs_per_second)} GMAC/s`],
      ['reading', `${giga(limits.read_bytes_per_second)} GB/s, a block of ${bytes(limits.block_bytes)}`]]);
    const limit = step => step.of_limit === undefined ? ''
      : `${percent(step.of_limit)} ${step.limited_by === 'reading' ? 'reading' : step.products + ' products'}`;
    const runs = [[prefill, 'Prefill of ' + grouped(prefill?.tokens ?? 0)], [decode, 'Decode, one token']].filter(([run]) => run)
      .flatMap(([run, title]) => [el('h3', {}, title),
        el('p', {}, `${time(run.seconds)} in all; ${time(run.judged_seconds)} in steps with a limit, which need ${time(run.least_seconds)} at least.`),
        table([['step'], ['output', false, true], ['time', true], ['GMAC/s', true, true], ['GB/s', true, true], ['of the limit', true]],
              run.steps.map(step => [`${step.step} ${step.op}`, step.output, time(step.seconds), giga(step.macs_per_second), giga(step.bytes_per_second), limit(step)]))]);
    this.section('roofline', 'Steps beside what the machine gives', others >= 0.1
      ? `This machine was busy: ${Math.round(others * 100)} % of a core for other programs. Times are to be doubted.` : '', rates, ...runs);
  }

  device() {
    const {before = {}, after = {}} = this.bench, parts = [];
    const mhz = value => value === undefined ? '' : `${grouped(value / 1000)} MHz`;
    if (after.cores) {
      parts.push(el('h3', {}, 'Clocks'), table([['core'], ['governor', false, true], ['before', true], ['after', true], ['at most', true]],
        after.cores.map((core, i) => [String(core.core), core.governor ?? '', mhz(before.cores?.[i]?.khz), mhz(core.khz), mhz(core.max_khz)])));
    }
    if (after.temperatures) {
      const was = new Map((before.temperatures ?? []).map(one => [one.zone, one.celsius]));
      parts.push(el('h3', {}, 'Temperatures'), table([['zone'], ['before', true], ['after', true]], after.temperatures.map(one =>
        [`${one.zone} ${one.type}`, was.has(one.zone) ? `${was.get(one.zone).toFixed(1)} °C` : '', `${one.celsius.toFixed(1)} °C`])));
    }
    if (parts.length > 0) this.section('device', 'Clocks and temperatures', '', ...parts);
  }
}
