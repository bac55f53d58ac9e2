// Checks documents of KEDA and of the Prometheus operator by the models that are
// generated from their types, and refuses fields that these do not know.
//
// Usage: node custom.mjs NODE_MODULES, with a JSON list of documents on standard input.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const PACKAGES = { 'keda.sh': 'keda', 'monitoring.coreos.com': 'prometheus-operator' };
const modules = process.argv[2];

// watch notes which fields of a document are looked at: a field that its check
// never looks at is one that it does not know.
function watch(value, at, seen) {
  if (value === null || typeof value !== 'object') return value;
  return new Proxy(value, {
    get(target, key) {
      if (typeof key !== 'string' || !Object.hasOwn(target, key)) return target[key];
      seen.add(`${at}/${key}`);
      return watch(target[key], `${at}/${key}`, seen);
    },
  });
}

function* fields(value, at) {
  if (value === null || typeof value !== 'object') return;
  for (const [key, inner] of Object.entries(value)) {
    yield `${at}/${key}`;
    yield* fields(inner, `${at}/${key}`);
  }
}

for (const document of JSON.parse(fs.readFileSync(0, 'utf8'))) {
  const [group, version] = document.apiVersion.split('/');
  const file = path.join(modules, '@kubernetes-models', PACKAGES[group], group, version, `${document.kind}.js`);
  const model = (await import(pathToFileURL(file)))[document.kind];
  const seen = new Set(['/apiVersion', '/kind']);
  new model(document).validate();
  const watched = new model({});
  for (const key of Object.keys(document)) {
    seen.add(`/${key}`);
    watched[key] = watch(document[key], `/${key}`, seen);
  }
  watched.validate();
  const unknown = [...fields(document, '')].filter((field) => !seen.has(field) && !/^\/metadata\/(labels|annotations)\//.test(field));
  if (unknown.length > 0) throw new Error(`${document.kind} ${document.metadata.name}: no such field: ${unknown.join(', ')}`);
}
