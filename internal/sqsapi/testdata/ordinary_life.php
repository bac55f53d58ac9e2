<?php
// What a program does with AsyncAws: create, send, receive, hide, delete, batches, and errors by their class.
require 'AsyncAws/Sqs/autoload.php';

use AsyncAws\Core\Exception\Http\ClientException;
use AsyncAws\Sqs\SqsClient;

function check(bool $holds, string $what): void
{
    if (!$holds) {
        fwrite(STDERR, "not so: $what\n");
        exit(1);
    }
}

$sqs = new SqsClient([
    'endpoint' => getenv('AWS_ENDPOINT_URL_SQS'), 'region' => 'us-east-1',
    'accessKeyId' => 'test', 'accessKeySecret' => 'test',
]);

$url = $sqs->createQueue(['QueueName' => 'jobs', 'Attributes' => ['VisibilityTimeout' => '45']])->getQueueUrl();
check($url === getenv('AWS_ENDPOINT_URL_SQS') . '/000000000000/jobs', "the URL is $url");
check($sqs->queueExists(['QueueName' => 'jobs'])->isSuccess(), 'the queue exists');
check($sqs->getQueueUrl(['QueueName' => 'jobs'])->getQueueUrl() === $url, 'its URL is found by its name');

$body = "<Zürich> & \"quotes\" \\ \n 😀";
$sent = $sqs->sendMessage([
    'QueueUrl' => $url, 'MessageBody' => $body,
    'MessageAttributes' => ['city' => ['DataType' => 'String', 'StringValue' => 'Zürich'],
        'blob' => ['DataType' => 'Binary', 'BinaryValue' => "\x00\xff"]],
]);
check($sent->getMD5OfMessageBody() === md5($body), 'the digest of the body');

$received = $sqs->receiveMessage([
    'QueueUrl' => $url, 'AttributeNames' => ['All'], 'MessageAttributeNames' => ['All'], 'WaitTimeSeconds' => 1,
])->getMessages();
check(count($received) === 1 && $received[0]->getBody() === $body, 'the message comes as it was sent');
check($received[0]->getMessageAttributes()['city']->getStringValue() === 'Zürich', 'with its attribute');
check($received[0]->getMessageAttributes()['blob']->getBinaryValue() === "\x00\xff", 'and the binary one');
check($received[0]->getAttributes()['ApproximateReceiveCount'] === '1', 'received once');
check(count($sqs->receiveMessage(['QueueUrl' => $url])->getMessages()) === 0, 'nobody else gets it');

$handle = $received[0]->getReceiptHandle();
$sqs->changeMessageVisibility(['QueueUrl' => $url, 'ReceiptHandle' => $handle, 'VisibilityTimeout' => 0])->resolve();
$again = $sqs->receiveMessage(['QueueUrl' => $url, 'AttributeNames' => ['All']])->getMessages();
check(count($again) === 1 && $again[0]->getAttributes()['ApproximateReceiveCount'] === '2', 'it comes again');
$sqs->deleteMessage(['QueueUrl' => $url, 'ReceiptHandle' => $again[0]->getReceiptHandle()])->resolve();

$batch = $sqs->sendMessageBatch(['QueueUrl' => $url, 'Entries' => [
    ['Id' => 'a', 'MessageBody' => 'one'], ['Id' => 'b', 'MessageBody' => "\x01"], ['Id' => 'c', 'MessageBody' => 'three'],
]]);
check(count($batch->getSuccessful()) === 2 && $batch->getFailed()[0]->getId() === 'b', 'the bad entry fails alone');
$three = $sqs->receiveMessage(['QueueUrl' => $url, 'MaxNumberOfMessages' => 10])->getMessages();
check(count($three) === 2, 'both of the batch come');
$deleted = $sqs->deleteMessageBatch(['QueueUrl' => $url, 'Entries' => array_map(
    fn ($i, $m) => ['Id' => "m$i", 'ReceiptHandle' => $m->getReceiptHandle()], array_keys($three), $three)]);
check(count($deleted->getSuccessful()) === 2, 'and are deleted');
check($sqs->getQueueAttributes(['QueueUrl' => $url, 'AttributeNames' => ['All']])
    ->getAttributes()['ApproximateNumberOfMessages'] === '0', 'nothing is left');

try {
    $sqs->sendMessage(['QueueUrl' => $url . '-absent', 'MessageBody' => 'x'])->resolve();
    check(false, 'a queue that does not exist is an error');
} catch (ClientException $e) {
    check($e->getAwsCode() === 'AWS.SimpleQueueService.NonExistentQueue', 'its code is ' . $e->getAwsCode());
}
$sqs->purgeQueue(['QueueUrl' => $url])->resolve();
$sqs->deleteQueue(['QueueUrl' => $url])->resolve();
check(!$sqs->queueExists(['QueueName' => 'jobs'])->isSuccess(), 'the queue is gone');
