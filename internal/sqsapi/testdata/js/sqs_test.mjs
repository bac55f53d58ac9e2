// Every action of the endpoint, called by the AWS SDK for JavaScript.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import * as sdk from "@aws-sdk/client-sqs";

const client = new sdk.SQSClient({});
const send = (name, input) => client.send(new sdk[name + "Command"](input));
const md5 = (text) => createHash("md5").update(text).digest("hex");

// refused expects an error of the SDK's class with this name.
async function refused(name, action, input) {
  try {
    await send(action, input);
  } catch (error) {
    assert.equal(error.name, name);
    if (sdk[name]) assert.ok(error instanceof sdk[name], `${error.name} is not the SDK's class`);
    return error.message;
  }
  assert.fail(`${action} was not refused`);
}

async function messages() {
  const { QueueUrl } = await send("CreateQueue", { QueueName: "jobs", tags: { team: "a" } });
  assert.equal(QueueUrl, `${process.env.AWS_ENDPOINT_URL_SQS}/000000000000/jobs`);
  assert.equal((await send("ReceiveMessage", { QueueUrl })).Messages, undefined);

  const body = "<body> & \"quotes\" \\ \n 😀 \u2028";
  const attributes = {
    city: { DataType: "String", StringValue: "Zürich" },
    blob: { DataType: "Binary", BinaryValue: Uint8Array.of(0, 255, 10) },
  };
  const sent = await send("SendMessage", { QueueUrl, MessageBody: body, MessageAttributes: attributes });
  assert.equal(sent.MD5OfMessageBody, md5(body));

  const { Messages } = await send("ReceiveMessage", {
    QueueUrl, WaitTimeSeconds: 1, MessageAttributeNames: ["All"], MessageSystemAttributeNames: ["All"],
  });
  assert.equal(Messages.length, 1);
  const [got] = Messages;
  assert.equal(got.Body, body);
  assert.equal(got.MessageId, sent.MessageId);
  assert.equal(got.MD5OfMessageAttributes, sent.MD5OfMessageAttributes);
  assert.equal(got.MessageAttributes.city.StringValue, "Zürich");
  assert.deepEqual([...got.MessageAttributes.blob.BinaryValue], [0, 255, 10]);
  assert.equal(got.Attributes.ApproximateReceiveCount, "1");

  await send("ChangeMessageVisibility", { QueueUrl, ReceiptHandle: got.ReceiptHandle, VisibilityTimeout: 0 });
  const again = (await send("ReceiveMessage", { QueueUrl })).Messages[0];
  await send("DeleteMessage", { QueueUrl, ReceiptHandle: again.ReceiptHandle });
}

async function batches() {
  const { QueueUrl } = await send("GetQueueUrl", { QueueName: "jobs" });
  const sent = await send("SendMessageBatch", {
    QueueUrl,
    Entries: [{ Id: "a", MessageBody: "1" }, { Id: "b", MessageBody: "2" }, { Id: "c", MessageBody: "3", DelaySeconds: 901 }],
  });
  assert.deepEqual(sent.Successful.map((e) => e.Id), ["a", "b"]);
  assert.deepEqual(sent.Failed.map((e) => [e.Id, e.Code, e.SenderFault]), [["c", "InvalidParameterValue", true]]);
  const { Messages } = await send("ReceiveMessage", { QueueUrl, MaxNumberOfMessages: 10 });
  const Entries = Messages.map((m, n) => ({ Id: `${n}`, ReceiptHandle: m.ReceiptHandle }));
  const changed = await send("ChangeMessageVisibilityBatch", { QueueUrl, Entries: Entries.map((e) => ({ ...e, VisibilityTimeout: 60 })) });
  assert.equal(changed.Successful.length, 2);
  const deleted = await send("DeleteMessageBatch", { QueueUrl, Entries });
  assert.equal(deleted.Successful.length, 2);
  assert.equal(deleted.Failed, undefined);
}

async function fifo() {
  const { QueueUrl } = await send("CreateQueue", { QueueName: "steps.fifo", Attributes: { FifoQueue: "true" } });
  for (const n of ["1", "2", "2"]) {
    await send("SendMessage", { QueueUrl, MessageBody: n, MessageGroupId: "g", MessageDeduplicationId: n });
  }
  const { Messages } = await send("ReceiveMessage", { QueueUrl, MaxNumberOfMessages: 10 });
  assert.deepEqual(Messages.map((m) => m.Body), ["1", "2"]);
}

async function queues() {
  const { QueueUrl } = await send("GetQueueUrl", { QueueName: "jobs" });
  const dead = (await send("CreateQueue", { QueueName: "dead" })).QueueUrl;
  const arn = (await send("GetQueueAttributes", { QueueUrl: dead, AttributeNames: ["QueueArn"] })).Attributes.QueueArn;
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: arn, maxReceiveCount: 3 });
  await send("SetQueueAttributes", { QueueUrl, Attributes: { RedrivePolicy } });
  assert.deepEqual((await send("ListDeadLetterSourceQueues", { QueueUrl: dead })).queueUrls, [QueueUrl]);
  const names = [];
  for await (const page of sdk.paginateListQueues({ client, pageSize: 1 }, {})) {
    names.push(...page.QueueUrls.map((url) => url.split("/").pop()));
  }
  assert.deepEqual(names, ["dead", "jobs", "steps.fifo"]);
  await send("TagQueue", { QueueUrl, Tags: { stage: "test" } });
  await send("UntagQueue", { QueueUrl, TagKeys: ["team"] });
  assert.deepEqual((await send("ListQueueTags", { QueueUrl })).Tags, { stage: "test" });
  await send("PurgeQueue", { QueueUrl });
  await send("DeleteQueue", { QueueUrl });
  await refused("QueueDoesNotExist", "GetQueueUrl", { QueueName: "jobs" });
}

async function refusals() {
  const { QueueUrl } = await send("GetQueueUrl", { QueueName: "dead" });
  assert.equal(await refused("QueueDoesNotExist", "GetQueueUrl", { QueueName: "nothing" }), "The specified queue does not exist.");
  await refused("ReceiptHandleIsInvalid", "DeleteMessage", { QueueUrl, ReceiptHandle: "x" });
  await refused("EmptyBatchRequest", "SendMessageBatch", { QueueUrl, Entries: [] });
  await refused("InvalidMessageContents", "SendMessage", { QueueUrl, MessageBody: "\ud800" });
}

for (const part of [messages, batches, fifo, queues, refusals]) await part();
console.log("AWS SDK for JavaScript: all parts passed");
