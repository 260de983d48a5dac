// The page: what was measured first, then what the files hold.

function buildPage() {
  const {made, models, bench} = data;
  const names = [...new Set([...models.map(model => model.path), ...bench.map(one => one.model)])].map(fileName);
  document.querySelector('h1').textContent = names.join(', ');
  document.querySelector('header .note').textContent = models.map(model => model.architecture).join(', ');
  const parts = models.map((model, i) => new ModelSections(model, i, models.length > 1));
  if (bench.length > 1) compareBenches(bench);
  bench.forEach((one, i) => new BenchSections(one, i, bench.length > 1, parts).build());
  parts.forEach(part => part.build());
  section('made', 'How this was made', '', facts([['command', made.command], ['date', made.date], ['Oxbow', made.version],
    ...models.map(model => [`hash of ${fileName(model.path)}`, model.hash])]));
}
buildPage();
