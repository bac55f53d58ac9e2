// sqs-consumer takes messages as a program would: batches, heartbeats, one message that fails twice.
import assert from "node:assert/strict";
import { SQSClient, CreateQueueCommand, GetQueueAttributesCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";

const sqs = new SQSClient({});
const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: "jobs" }));
const wanted = [];
for (let n = 0; n < 15; n++) {
  wanted.push(`job ${n}`);
  await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: `job ${n}`,
    MessageAttributes: { n: { DataType: "Number", StringValue: String(n) } } }));
}
const done = [];
let failures = 0;
const errors = [];
const consumer = Consumer.create({
  queueUrl: QueueUrl, sqs, batchSize: 10, waitTimeSeconds: 1, visibilityTimeout: 30, heartbeatInterval: 10,
  terminateVisibilityTimeout: true, messageAttributeNames: ["All"],
  handleMessage: async (message) => {
    assert.equal(message.Body, `job ${message.MessageAttributes.n.StringValue}`);
    if (message.Body === "job 7" && failures < 2) {
      failures++;
      throw new Error("fails on purpose");
    }
    done.push(message.Body);
    return message;
  },
});
consumer.on("error", (error) => errors.push(error));
consumer.start();
const deadline = Date.now() + 60_000;
while (done.length < wanted.length && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 50));
const stopped = new Promise((resolve) => consumer.on("stopped", resolve));
consumer.stop();
await stopped;
assert.deepEqual([...done].sort(), [...wanted].sort());
assert.equal(failures, 2);
assert.deepEqual(errors, []);
const AttributeNames = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
let left;
do {
  left = (await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames }))).Attributes;
} while (Object.values(left).some((n) => n !== "0") && Date.now() < deadline);
assert.deepEqual(Object.values(left), ["0", "0"]);
console.log("sqs-consumer: all jobs done");
