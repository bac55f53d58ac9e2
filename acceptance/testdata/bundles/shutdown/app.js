// The app that the platform checks. It takes no part in the work and answers 200 to everything.
'use strict';
require('node:http').createServer((request, response) => {
  request.resume();
  response.end();
}).listen(process.env.PORT, '127.0.0.1');
