// The fetch of Node.js, without an SDK: both protocols, the ordinary life of a message.
import assert from "node:assert/strict";

const endpoint = process.env.AWS_ENDPOINT_URL_SQS;

async function query(action, parameters = {}) {
  const answer = await fetch(endpoint, { method: "POST", body: new URLSearchParams({ Action: action, ...parameters }) });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return text;
}

async function json(action, body) {
  const answer = await fetch(endpoint, {
    method: "POST",
    headers: { "content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS." + action },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return text && JSON.parse(text);
}

const url = /<QueueUrl>(.*)<\/QueueUrl>/.exec(await query("CreateQueue", { QueueName: "fetched" }))[1];
await query("SendMessage", { QueueUrl: url, MessageBody: "by form" });
const got = await json("ReceiveMessage", { QueueUrl: url });
assert.equal(got.Messages[0].Body, "by form");
await json("DeleteMessage", { QueueUrl: url, ReceiptHandle: got.Messages[0].ReceiptHandle });

const listed = await fetch(endpoint + "/?Action=ListQueues");
assert.equal(listed.status, 200);
assert.match(await listed.text(), /fetched/);

// With an origin it is a page's.
const page = await fetch(endpoint, { method: "POST", headers: { origin: "https://evil.example" }, body: "Action=ListQueues" });
assert.equal(page.status, 403);
