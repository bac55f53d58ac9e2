// sqs-consumer posting each message to an app: ten at once in each consumer, deleted in one call.
import { createRequire } from "node:module";
import http from "node:http";
const require = createRequire(process.env.NODE_FOLDER + "/");
const { Consumer } = require("sqs-consumer");

const connections = Number(process.env.BENCH_CONNECTIONS);
const agent = new http.Agent({ keepAlive: true, maxSockets: connections });

function post(body) {
  return new Promise((resolve, reject) => {
    const request = http.request(process.env.BENCH_URL, { method: "POST", agent, headers: {
      "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) } }, (answer) => {
      answer.resume();
      answer.on("end", () => (answer.statusCode === 200 ? resolve() : reject(new Error(`status ${answer.statusCode}`))));
    });
    request.on("error", reject);
    request.end(body);
  });
}

for (let i = 0; i < connections; i += 10) {
  const consumer = Consumer.create({
    queueUrl: process.env.BENCH_QUEUE,
    batchSize: 10,
    waitTimeSeconds: 20,
    messageAttributeNames: ["All"],
    messageSystemAttributeNames: ["All"],
    handleMessageBatch: async (messages) => {
      await Promise.all(messages.map((m) => post(m.Body)));
      return messages;
    },
  });
  consumer.on("error", (err) => console.error(err));
  consumer.on("processing_error", (err) => console.error(err));
  consumer.start();
}
process.on("SIGTERM", () => process.exit(0));
