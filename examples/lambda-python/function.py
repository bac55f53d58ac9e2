#!/usr/bin/env python3
"""A Lambda function in Python that needs nothing but the standard library: it
writes a receipt for every order, and speaks the Lambda Runtime API itself."""
import http.client
import json
import os


def handle(event):
    """Writes the receipts; names the messages that are no orders."""
    failures = []
    for record in event["Records"]:
        try:
            order = json.loads(record["body"])
            total = sum(item["cents"] * item.get("count", 1) for item in order["items"])
            text = f"{order['customer']}: {total / 100:.2f}\n"
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            print(f"message {record['messageId']}: no order: {e!r}", flush=True)
            failures.append({"itemIdentifier": record["messageId"]})
            continue
        folder = os.environ.get("RECEIPTS_DIR", ".")
        with open(os.path.join(folder, record["messageId"] + ".txt"), "w") as receipt:
            receipt.write(text)  # the id names the file, so a second attempt does no harm
    return {"batchItemFailures": failures}


def main():
    """The loop of a custom runtime: ask for an event, post the answer."""
    api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    invocation = "/2018-06-01/runtime/invocation/"
    while True:
        api.request("GET", invocation + "next")
        reply = api.getresponse()
        event, request_id = json.load(reply), reply.headers["Lambda-Runtime-Aws-Request-Id"]
        try:
            path, answer = "/response", handle(event)
        except Exception as e:  # what went wrong is the answer; the next event may do better
            path, answer = "/error", {"errorType": type(e).__name__, "errorMessage": str(e)}
        api.request("POST", invocation + request_id + path, json.dumps(answer))
        api.getresponse().read()


if __name__ == "__main__":
    main()
