// A worker that takes jobs from a queue itself. After TERM it takes no more, and ends with those that it has.
'use strict';
const fs = require('node:fs');
const http = require('node:http');

const endpoint = process.env.AWS_ENDPOINT_URL_SQS;
const credential = `${process.env.AWS_ACCESS_KEY_ID}/20150913/${process.env.AWS_REGION}/sqs/aws4_request`;
let stopping = false;
process.on('SIGTERM', () => {
  stopping = true;
  console.log(`worker ${process.pid} takes no more jobs`);
});

function call(action, input) {
  return new Promise((resolve, reject) => {
    const headers = {
      'Content-Type': 'application/x-amz-json-1.0',
      'X-Amz-Target': `AmazonSQS.${action}`,
      Authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host, Signature=${'0'.repeat(64)}`,
    };
    const request = http.request(endpoint, { method: 'POST', headers }, async (response) => {
      const parts = await response.toArray();
      const text = Buffer.concat(parts).toString();
      if (response.statusCode === 200) resolve(text ? JSON.parse(text) : {});
      else reject(new Error(`${action}: ${response.statusCode} ${text}`));
    });
    request.on('error', reject);
    request.end(JSON.stringify(input));
  });
}

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

async function main() {
  const { QueueUrl } = await call('CreateQueue', { QueueName: process.env.JOBS_QUEUE });
  console.log(`worker ${process.pid} takes jobs, greeting ${process.env.GREETING}`);
  while (!stopping) {
    const { Messages = [] } = await call('ReceiveMessage', { QueueUrl, WaitTimeSeconds: 1, VisibilityTimeout: 120 });
    for (const { Body, ReceiptHandle } of Messages) {
      const job = JSON.parse(Body);
      if (job.crash) {
        await call('DeleteMessage', { QueueUrl, ReceiptHandle });
        process.exit(3);
      }
      console.log(`begun ${job.name}`);
      while (job.until && !fs.existsSync(job.until)) await pause(20);
      await call('DeleteMessage', { QueueUrl, ReceiptHandle });
      console.log(`done ${job.name} by ${process.pid}, stopping ${stopping}`);
    }
  }
}

main().then(() => process.exit(0), (err) => { console.error(err); process.exit(1); });
