"""A Lambda function for the public Python runtime client."""
import os
import sys
import time


class NoSuchCustomer(Exception):
    pass


def handle(event, context):
    how = event.get("how")
    if how == "raise":
        raise NoSuchCustomer("customer 17")
    if how == "exit":
        os._exit(5)
    if how == "hang":
        time.sleep(3600)
    if how == "context":
        print("hello from", context.function_name, flush=True)
        return {"id": context.aws_request_id, "arn": context.invoked_function_arn, "left": context.get_remaining_time_in_millis() > 0}
    return {"batchItemFailures": [{"itemIdentifier": r["messageId"]} for r in event["Records"] if r["body"] == "bad"]}
