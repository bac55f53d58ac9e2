// An app for tendril in plain Node: a letter for every message.
//
// Nothing here is tendril's own: a server on PORT, one POST per message, 200
// when the work is on disk. The message id names the file, so that doing one
// twice does no harm.
'use strict';
const fs = require('node:fs/promises');
const http = require('node:http');
const path = require('node:path');

const DIR = process.env.LETTERS_DIR || 'out';
const FROM = process.env.LETTERS_FROM || 'letters@example.com';
const LARGEST_BODY = 1024 * 1024; // bytes; what a queue takes
const MESSAGE_ID = /^[A-Za-z0-9-]{1,100}$/; // it becomes a file name
const ONE_LINE = /^[^\x00-\x1f\x7f]{1,200}$/; // a header of a letter cannot hold more

// Refusal is an answer that says what was wrong with the request.
class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

// body reads what was posted, to a bound.
async function body(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > LARGEST_BODY) throw new Refusal(413, `the body is longer than ${LARGEST_BODY} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

// read makes a letter of a message; trying a wrong one again will not help.
function read(text) {
  let letter;
  try {
    letter = JSON.parse(text);
  } catch (err) {
    throw new Refusal(422, `the body is not a letter: ${err.message}`);
  }
  for (const key of ['to', 'subject']) {
    if (!letter || typeof letter[key] !== 'string' || !ONE_LINE.test(letter[key])) throw new Refusal(422, `a letter has "${key}", on one line`);
  }
  return `From: ${FROM}\nTo: ${letter.to}\nSubject: ${letter.subject}\n\n${letter.text || ''}\n`;
}

// write writes a file whole or not at all.
async function write(file, text) {
  const fresh = `${file}.${process.pid}.${process.hrtime.bigint()}.new`;
  const handle = await fs.open(fresh, 'wx');
  try {
    await handle.writeFile(text);
    await handle.sync(); // 200 lets the message be deleted
  } finally {
    await handle.close();
  }
  await fs.rename(fresh, file);
}

async function post(request) {
  const id = request.headers['x-aws-sqsd-msgid'] || '';
  if (!MESSAGE_ID.test(id)) throw new Refusal(400, 'no message id in X-Aws-Sqsd-Msgid: letters come from a worker daemon');
  await write(path.join(DIR, `${id}.eml`), read(await body(request)));
  console.log(`${id}.eml written, attempt ${request.headers['x-aws-sqsd-receive-count']}`);
  return 'written';
}

async function count() {
  const letters = (await fs.readdir(DIR)).filter((name) => name.endsWith('.eml')).length;
  console.log(`${letters} letters so far`);
  return `${letters} letters`;
}

async function answer(request, response) {
  const routes = { 'POST /letters': post, 'POST /count': count, 'GET /': count };
  const route = routes[`${request.method} ${request.url.split('?')[0]}`];
  let status = 200;
  let text;
  try {
    if (!route) throw new Refusal(404, 'there is nothing here');
    text = await route(request);
  } catch (err) {
    status = err.status || 500;
    text = err.message;
    console.error(`${request.method} ${request.url}: ${text}`);
  }
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}

async function main() {
  await fs.mkdir(DIR, { recursive: true });
  const server = http.createServer(answer);
  server.keepAliveTimeout = 3000; // milliseconds; tendril keeps unused connections for 1000
  server.listen(Number(process.env.PORT || 5000), '127.0.0.1', () => {
    console.log(`letters: listening on ${server.address().port}, writing to ${DIR}`);
  });
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.on(signal, () => server.close()); // ends when the letters in hand are written
  }
}

main();
