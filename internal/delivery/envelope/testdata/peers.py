"""Prints what a queue receives, one JSON object per line: an SNS notification,
a raw SNS delivery, and the messages of the public extended client. Everything
runs in moto, in this process."""
import json
import os

import boto3
from moto import mock_aws

os.environ.update(AWS_DEFAULT_REGION="eu-west-1", AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x")


def show(kind, message, **more):
    attributes = {name: {"type": a["DataType"], "value": a.get("StringValue", "")} for name, a in message.get("MessageAttributes", {}).items()}
    print(json.dumps({"kind": kind, "body": message["Body"], "attributes": attributes, **more}))


def receive(sqs, url):
    (message,) = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return message


with mock_aws():
    sqs, sns, s3 = boto3.client("sqs"), boto3.client("sns"), boto3.client("s3")
    url = sqs.create_queue(QueueName="q")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topic = sns.create_topic(Name="orders")["TopicArn"]
    subscription = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)["SubscriptionArn"]
    published = {"TopicArn": topic, "Message": '{"total": "3 €"}', "Subject": "new order", "MessageAttributes": {
        "tenant": {"DataType": "String", "StringValue": "acme"}, "n": {"DataType": "Number", "StringValue": "7"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}}
    sns.publish(**published)
    show("notification", receive(sqs, url), topic=topic)
    sns.set_subscription_attributes(SubscriptionArn=subscription, AttributeName="RawMessageDelivery", AttributeValue="true")
    del published["MessageAttributes"]["raw"]  # moto cannot deliver bytes raw
    sns.publish(**published)
    show("raw", receive(sqs, url))

    import sqs_extended_client  # changes boto3's clients

    s3.create_bucket(Bucket="payloads", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    for legacy in False, True:
        extended = boto3.client("sqs")
        extended.large_payload_support, extended.always_through_s3, extended.use_legacy_attribute = "payloads", True, legacy
        extended.send_message(QueueUrl=url, MessageBody="a large one, more or less",
                              MessageAttributes={"tenant": {"DataType": "String", "StringValue": "acme"}})
        message = receive(sqs, url)
        (listed,) = s3.list_objects_v2(Bucket="payloads")["Contents"]
        show("pointer", message, key=listed["Key"], object=s3.get_object(Bucket="payloads", Key=listed["Key"])["Body"].read().decode())
        s3.delete_object(Bucket="payloads", Key=listed["Key"])
