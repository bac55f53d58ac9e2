"""A Celery worker and its client: tasks, a task for later, one that is tried again, and one that is revoked by its expiry."""

import os
import subprocess
import sys
import tempfile
import time

import boto3
import celery
import kombu

ENDPOINT = os.environ["AWS_ENDPOINT_URL_SQS"]
DONE = os.environ.setdefault("DONE", os.path.join(tempfile.mkdtemp(), "done"))

app = celery.Celery("life", broker=ENDPOINT.replace("http://", "sqs://test:test@"))
app.conf.update(
    broker_transport_options={"region": "us-east-1", "is_secure": False, "wait_time_seconds": 1, "polling_interval": 0.05},
    task_acks_late=True,
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=True,
)


def note(text):
    with open(DONE, "a", encoding="utf-8") as file:
        file.write(text + "\n")


@app.task(bind=True, max_retries=3, name="work")
def work(self, name, fails=0):
    if self.request.retries < fails:
        raise self.retry(countdown=0)
    note(name)


def main():
    for n in range(25):
        work.delay("task %d é <&> 😀" % n)
    work.apply_async(["later"], countdown=1)
    work.delay("again", fails=2)
    work.apply_async(["expired"], expires=-1)
    wanted = {"task %d é <&> 😀" % n for n in range(25)} | {"later", "again"}
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "celery_life", "worker", "--pool=solo", "--loglevel=INFO"]
        + ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    )
    try:
        deadline = time.time() + 60
        lines = []
        while set(lines) != wanted:
            assert time.time() < deadline, "done after 60 s: %r" % lines
            assert worker.poll() is None, "the worker has ended"
            time.sleep(0.1)
            if os.path.exists(DONE):
                lines = open(DONE, encoding="utf-8").read().splitlines()
        assert len(lines) == len(wanted), lines
    finally:
        worker.terminate()
        worker.wait(30)
    sqs = boto3.client("sqs", endpoint_url=ENDPOINT)
    url = sqs.get_queue_url(QueueName="celery")["QueueUrl"]
    counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=counts)["Attributes"]
    assert set(left.values()) == {"0"}, left
    print("celery %s, kombu %s, boto3 %s: all tasks done" % (celery.__version__, kombu.__version__, boto3.__version__))


if __name__ == "__main__":
    main()
