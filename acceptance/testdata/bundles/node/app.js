// A worker in plain Node, in the shape of the sample for worker environments: / works, /scheduled runs tasks.
'use strict';
const http = require('node:http');

http.createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const known = request.method === 'POST' && ['/', '/scheduled'].includes(request.url);
    if (known) {
      console.log(`seen ${JSON.stringify({ path: request.url, body: Buffer.concat(parts).toString(), headers: request.headers })}`);
    }
    response.writeHead(known ? 200 : 404, 'done', { 'Content-Type': 'text/plain' });
    response.end();
  });
}).listen(process.env.PORT || 3000, '127.0.0.1');
