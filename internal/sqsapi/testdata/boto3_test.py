"""Every action of the endpoint, called by boto3 as a program would."""

import hashlib
import json
import os
import struct
import time
import urllib.error
import urllib.request

import boto3
from botocore.exceptions import ClientError

ENDPOINT = os.environ["AWS_ENDPOINT_URL_SQS"]
OLD = int(boto3.__version__.split(".")[1]) < 28  # does not know the variable
sqs = boto3.client("sqs", endpoint_url=ENDPOINT if OLD else None)
# Until November 2023 boto3 spoke the Query protocol, whose answers name an error once.
QUERY = sqs.meta.service_model.metadata["protocol"] == "query"
assert QUERY == OLD, boto3.__version__


def refused(code, shape, call, **parameters):
    """Expects a refusal by its query code and, where given, its shape and type."""
    try:
        call(**parameters)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error.response
        if shape:
            assert QUERY or error.response["Error"].get("QueryErrorCode") == shape, error.response
            assert isinstance(error, getattr(sqs.exceptions, shape)), type(error)
        return error.response["Error"]["Message"]
    raise AssertionError("%s was not refused" % call)


def digest(attributes):
    """The attribute digest, computed apart from the server."""
    whole = hashlib.md5()
    for name in sorted(attributes):
        value = attributes[name]
        binary = value["DataType"].startswith("Binary")
        raw = value["BinaryValue"] if binary else value["StringValue"].encode()
        for part in (name.encode(), value["DataType"].encode()):
            whole.update(struct.pack(">I", len(part)) + part)
        whole.update((b"\2" if binary else b"\1") + struct.pack(">I", len(raw)) + raw)
    return whole.hexdigest()


def messages():
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    assert url == ENDPOINT + "/000000000000/jobs", url
    assert "Messages" not in sqs.receive_message(QueueUrl=url)

    attributes = {
        "city": {"DataType": "String", "StringValue": "Zürich 😀"},
        "age": {"DataType": "Number.int", "StringValue": "42"},
        "blob": {"DataType": "Binary", "BinaryValue": b"\x00\xff\n"},
    }
    body = "<body> & \"quotes\" \\ \n 😀"
    sent = sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)
    assert sent["MD5OfMessageBody"] == hashlib.md5(body.encode()).hexdigest()
    assert sent["MD5OfMessageAttributes"] == digest(attributes)

    system = {"AttributeNames" if QUERY else "MessageSystemAttributeNames": ["All"]}
    [got] = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1, MessageAttributeNames=["All"], **system)["Messages"]
    assert got["Body"] == body and got["MessageId"] == sent["MessageId"], got
    assert got["MessageAttributes"] == attributes, got
    assert got["MD5OfMessageAttributes"] == digest(attributes)
    assert abs(int(got["Attributes"]["SentTimestamp"]) / 1000 - time.time()) < 60
    assert got["Attributes"]["ApproximateReceiveCount"] == "1"

    handle = got["ReceiptHandle"]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    [got] = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["ci.*"])["Messages"]
    assert list(got["MessageAttributes"]) == ["city"]
    assert got["MD5OfMessageAttributes"] == digest({"city": attributes["city"]})
    sqs.delete_message(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"])
    sqs.delete_message(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"])


def batches():
    url = sqs.get_queue_url(QueueName="jobs")["QueueUrl"]
    sent = sqs.send_message_batch(
        QueueUrl=url,
        Entries=[{"Id": "e%d" % n, "MessageBody": "body %d" % n} for n in range(9)]
        + [{"Id": "late", "MessageBody": "x", "DelaySeconds": 901}],
    )
    assert len(sent["Successful"]) == 9, sent
    [failure] = sent["Failed"]
    assert failure["Id"] == "late" and failure["SenderFault"] and failure["Code"] == "InvalidParameterValue", failure
    got = []
    while len(got) < 9:
        got += sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    entries = [{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(got)]
    changed = sqs.change_message_visibility_batch(
        QueueUrl=url, Entries=[dict(entry, VisibilityTimeout=60) for entry in entries]
    )
    assert len(changed["Successful"]) == 9 and "Failed" not in changed, changed
    deleted = sqs.delete_message_batch(QueueUrl=url, Entries=entries)
    assert len(deleted["Successful"]) == 9 and "Failed" not in deleted, deleted
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessages"] == counts["ApproximateNumberOfMessagesNotVisible"] == "0", counts


def fifo():
    url = sqs.create_queue(
        QueueName="steps.fifo", Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    )["QueueUrl"]
    for body in ("1", "2", "2", "3"):
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g")
    got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])["Messages"]
    assert [m["Body"] for m in got] == ["1", "2", "3"], got
    assert all(m["Attributes"]["MessageGroupId"] == "g" for m in got), got


def queues():
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    url = sqs.create_queue(
        QueueName="mail",
        Attributes={"RedrivePolicy": '{"deadLetterTargetArn":"%s","maxReceiveCount":3}' % arn},
        tags={"team": "a"},
    )["QueueUrl"]
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [url]
    assert sqs.list_queues(QueueNamePrefix="ma")["QueueUrls"] == [url]
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix="none")
    pages = sqs.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 1})
    names = [u.rsplit("/", 1)[1] for page in pages for u in page["QueueUrls"]]
    assert names == ["dead", "jobs", "mail", "steps.fifo"], names
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "7"})
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"] == {
        "VisibilityTimeout": "7"
    }
    sqs.tag_queue(QueueUrl=url, Tags={"stage": "test"})
    sqs.untag_queue(QueueUrl=url, TagKeys=["team"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"stage": "test"}
    sqs.purge_queue(QueueUrl=url)
    refused("AWS.SimpleQueueService.PurgeQueueInProgress", "PurgeQueueInProgress", sqs.purge_queue, QueueUrl=url)
    sqs.delete_queue(QueueUrl=url)
    refused("AWS.SimpleQueueService.QueueDeletedRecently", "QueueDeletedRecently", sqs.create_queue, QueueName="mail")


def dead_letters():
    """A message that fails goes to the dead-letter queue, and a move task brings it back."""
    dead = sqs.create_queue(QueueName="failed")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    url = sqs.create_queue(
        QueueName="orders",
        Attributes={"VisibilityTimeout": "0", "RedrivePolicy": '{"deadLetterTargetArn":"%s","maxReceiveCount":"2"}' % arn},
    )["QueueUrl"]
    sent = sqs.send_message(QueueUrl=url, MessageBody="broken")
    for _ in range(2):
        [got] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    [got] = sqs.receive_message(QueueUrl=dead, VisibilityTimeout=0, AttributeNames=["All"])["Messages"]
    assert got["MessageId"] == sent["MessageId"], got
    source = got["Attributes"]["DeadLetterQueueSourceArn"]
    assert source.endswith(":orders") and got["Attributes"]["ApproximateReceiveCount"] == "3", got

    handle = sqs.start_message_move_task(SourceArn=arn)["TaskHandle"]
    deadline = time.time() + 30
    while True:
        [task] = sqs.list_message_move_tasks(SourceArn=arn)["Results"]
        if task["Status"] == "COMPLETED":
            break
        assert task["Status"] == "RUNNING" and task["TaskHandle"] == handle and time.time() < deadline, task
        time.sleep(0.05)
    assert task["ApproximateNumberOfMessagesMoved"] == task["ApproximateNumberOfMessagesToMove"] == 1, task
    assert "DestinationArn" not in task and "TaskHandle" not in task and task["SourceArn"] == arn, task
    assert abs(task["StartedTimestamp"] / 1000 - time.time()) < 60, task
    [got] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert got["MessageId"] == sent["MessageId"], got
    refused("ResourceNotFoundException", "ResourceNotFoundException", sqs.cancel_message_move_task, TaskHandle=handle)
    refused("InvalidParameterValue", None, sqs.start_message_move_task, SourceArn=source)


def permissions():
    url = sqs.get_queue_url(QueueName="jobs")["QueueUrl"]
    sqs.add_permission(
        QueueUrl=url, Label="peers", AWSAccountIds=["111111111111", "222222222222"], Actions=["SendMessage", "ReceiveMessage"]
    )
    policy = json.loads(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]["Policy"])
    [statement] = policy["Statement"]
    assert statement["Sid"] == "peers" and statement["Action"] == ["SQS:SendMessage", "SQS:ReceiveMessage"], policy
    parameters = {"AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"]}
    refused("InvalidParameterValue", None, sqs.add_permission, QueueUrl=url, Label="peers", **parameters)
    sqs.remove_permission(QueueUrl=url, Label="peers")
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])


def refusals():
    url = sqs.get_queue_url(QueueName="jobs")["QueueUrl"]
    message = refused(
        "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", sqs.get_queue_url, QueueName="nothing"
    )
    wanted = "The specified queue does not exist" + (" for this wsdl version." if QUERY else ".")
    assert message == wanted, message
    refused("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", sqs.delete_message, QueueUrl=url, ReceiptHandle="x")
    refused("AWS.SimpleQueueService.EmptyBatchRequest", "EmptyBatchRequest", sqs.send_message_batch, QueueUrl=url, Entries=[])
    refused("InvalidParameterValue", None, sqs.receive_message, QueueUrl=url, MaxNumberOfMessages=11)
    refused("InvalidAttributeName", "InvalidAttributeName", sqs.get_queue_attributes, QueueUrl=url, AttributeNames=["X"])


def no_browsers():
    request = urllib.request.Request(
        ENDPOINT, b"{}", {"X-Amz-Target": "AmazonSQS.ListQueues", "Origin": "https://evil.example"}
    )
    try:
        urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        assert error.code == 403, error.code
        return
    raise AssertionError("a browser's request was served")


for part in (messages, batches, fifo, queues, dead_letters, permissions, refusals, no_browsers):
    part()
print("boto3 %s (%s): all parts passed" % (boto3.__version__, "Query" if QUERY else "JSON"))
