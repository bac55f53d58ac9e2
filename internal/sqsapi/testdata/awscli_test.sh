#!/bin/sh
# The life of a queue by the command line client of Amazon; its own command follows as arguments.
set -eu
client=$*
sqs() { $client sqs "$@" --endpoint-url "$AWS_ENDPOINT_URL_SQS" --output text; }
equal() { [ "$1" = "$2" ] || { echo "got $1, want $2" >&2; exit 1; }; }

url=$(sqs create-queue --queue-name jobs --attributes VisibilityTimeout=30 --tags team=a --query QueueUrl)
equal "$url" "$AWS_ENDPOINT_URL_SQS/000000000000/jobs"
equal "$(sqs get-queue-url --queue-name jobs --query QueueUrl)" "$url"
sqs send-message --queue-url "$url" --message-body 'a <b> & "c"' \
  --message-attributes '{"city":{"DataType":"String","StringValue":"Zürich"}}' >/dev/null
equal "$(sqs send-message-batch --queue-url "$url" --query 'length(Successful)' \
  --entries '[{"Id":"a","MessageBody":"one"},{"Id":"b","MessageBody":"two","DelaySeconds":0}]')" 2
handle=$(sqs receive-message --queue-url "$url" --message-attribute-names All --attribute-names All \
  --query 'Messages[0].ReceiptHandle')
sqs change-message-visibility --queue-url "$url" --receipt-handle "$handle" --visibility-timeout 0
got=$(sqs receive-message --queue-url "$url" --max-number-of-messages 10 --message-attribute-names '*' \
  --query 'length(Messages)')
equal "$got" 3
equal "$(sqs get-queue-attributes --queue-url "$url" --attribute-names ApproximateNumberOfMessagesNotVisible \
  --query Attributes.ApproximateNumberOfMessagesNotVisible)" 3
sqs delete-message --queue-url "$url" --receipt-handle "$handle"
equal "$(sqs list-queue-tags --queue-url "$url" --query Tags.team)" a
sqs purge-queue --queue-url "$url"
if error=$(sqs send-message --queue-url "$url-not-there" --message-body x 2>&1); then
  echo "a queue that is not there took a message" >&2
  exit 1
fi
case $error in
*NonExistentQueue*"The specified queue does not exist"*) ;;
*) equal "$error" "an error that names NonExistentQueue" ;;
esac
sqs delete-queue --queue-url "$url"
