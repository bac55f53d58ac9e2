// The life of a queue by the AWS SDK for Java: 2.20 speaks the Query protocol, newer ones AWS JSON.
// Run as: java -cp 'JARS/*' SqsLife.java

import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.*;

public class SqsLife {
    static final String ENDPOINT = System.getenv("AWS_ENDPOINT_URL_SQS");

    static final SqsClient sqs = SqsClient.builder()
            .endpointOverride(URI.create(ENDPOINT))
            .region(Region.US_EAST_1)
            .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test")))
            .build();

    static void equal(Object got, Object want) {
        if (!got.equals(want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    /** Expects an error of the SDK's class with a code. */
    static SqsException refused(Class<? extends SqsException> type, String code, Supplier<?> call) {
        try {
            call.get();
        } catch (SqsException e) {
            equal(e.getClass(), type);
            equal(e.awsErrorDetails().errorCode(), code);
            return e;
        }
        throw new AssertionError("not refused: " + code);
    }

    static void messages() {
        String url = sqs.createQueue(r -> r.queueName("jobs").tags(Map.of("team", "a"))).queueUrl();
        equal(url, ENDPOINT + "/000000000000/jobs");
        equal(sqs.receiveMessage(r -> r.queueUrl(url)).messages().size(), 0);
        String body = "<body> & \"quotes\" \\ \r\n 😀";
        Map<String, MessageAttributeValue> attributes = Map.of(
                "city", MessageAttributeValue.builder().dataType("String").stringValue("Zürich").build(),
                "age", MessageAttributeValue.builder().dataType("Number.int").stringValue("42").build(),
                "blob", MessageAttributeValue.builder().dataType("Binary")
                        .binaryValue(SdkBytes.fromByteArray(new byte[] {0, -1, 10})).build());
        String id = sqs.sendMessage(r -> r.queueUrl(url).messageBody(body).messageAttributes(attributes)).messageId();
        Message got = sqs.receiveMessage(r -> r.queueUrl(url).waitTimeSeconds(1).messageAttributeNames("All")
                .attributeNames(QueueAttributeName.ALL)).messages().get(0);
        equal(got.body(), body); // the SDK has checked the digest
        equal(got.messageId(), id);
        equal(got.messageAttributes(), attributes);
        equal(got.attributes().get(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT), "1");
        sqs.changeMessageVisibility(r -> r.queueUrl(url).receiptHandle(got.receiptHandle()).visibilityTimeout(0));
        Message again = sqs.receiveMessage(r -> r.queueUrl(url)).messages().get(0);
        sqs.deleteMessage(r -> r.queueUrl(url).receiptHandle(again.receiptHandle()));
    }

    static void batches() {
        String url = sqs.getQueueUrl(r -> r.queueName("jobs")).queueUrl();
        List<SendMessageBatchRequestEntry> entries = new ArrayList<>();
        for (int i = 0; i < 9; i++) {
            entries.add(SendMessageBatchRequestEntry.builder().id("e" + i).messageBody("body " + i).build());
        }
        entries.add(SendMessageBatchRequestEntry.builder().id("late").messageBody("x").delaySeconds(901).build());
        SendMessageBatchResponse sent = sqs.sendMessageBatch(r -> r.queueUrl(url).entries(entries));
        equal(sent.successful().size(), 9);
        equal(sent.failed().get(0).id(), "late");
        equal(sent.failed().get(0).senderFault(), true);
        equal(sent.failed().get(0).code(), "InvalidParameterValue");
        List<DeleteMessageBatchRequestEntry> handles = new ArrayList<>();
        while (handles.size() < 9) {
            for (Message m : sqs.receiveMessage(r -> r.queueUrl(url).maxNumberOfMessages(10)).messages()) {
                handles.add(DeleteMessageBatchRequestEntry.builder().id("d" + handles.size())
                        .receiptHandle(m.receiptHandle()).build());
            }
        }
        equal(sqs.deleteMessageBatch(r -> r.queueUrl(url).entries(handles)).successful().size(), 9);
        equal(sqs.getQueueAttributes(r -> r.queueUrl(url)
                .attributeNames(QueueAttributeName.APPROXIMATE_NUMBER_OF_MESSAGES_NOT_VISIBLE)).attributes(),
                Map.of(QueueAttributeName.APPROXIMATE_NUMBER_OF_MESSAGES_NOT_VISIBLE, "0"));
    }

    static void queues() {
        String dead = sqs.createQueue(r -> r.queueName("dead")).queueUrl();
        String arn = sqs.getQueueAttributes(r -> r.queueUrl(dead).attributeNames(QueueAttributeName.QUEUE_ARN))
                .attributes().get(QueueAttributeName.QUEUE_ARN);
        String url = sqs.createQueue(r -> r.queueName("mail").attributes(Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "0",
                QueueAttributeName.REDRIVE_POLICY, "{\"deadLetterTargetArn\":\"" + arn + "\",\"maxReceiveCount\":1}")))
                .queueUrl();
        sqs.sendMessage(r -> r.queueUrl(url).messageBody("broken"));
        equal(sqs.receiveMessage(r -> r.queueUrl(url)).messages().size(), 1);
        equal(sqs.receiveMessage(r -> r.queueUrl(url)).messages().size(), 0);
        equal(sqs.receiveMessage(r -> r.queueUrl(dead)).messages().get(0).body(), "broken");
        equal(sqs.listDeadLetterSourceQueues(r -> r.queueUrl(dead)).queueUrls(), List.of(url));
        equal(sqs.listQueues(r -> r.queueNamePrefix("ma")).queueUrls(), List.of(url));
        sqs.tagQueue(r -> r.queueUrl(url).tags(Map.of("stage", "test", "team", "a")));
        sqs.untagQueue(r -> r.queueUrl(url).tagKeys("team"));
        equal(sqs.listQueueTags(r -> r.queueUrl(url)).tags(), Map.of("stage", "test"));
        sqs.purgeQueue(r -> r.queueUrl(url));
        refused(PurgeQueueInProgressException.class, "AWS.SimpleQueueService.PurgeQueueInProgress",
                () -> sqs.purgeQueue(r -> r.queueUrl(url)));
        sqs.deleteQueue(r -> r.queueUrl(url));
        refused(QueueDeletedRecentlyException.class, "AWS.SimpleQueueService.QueueDeletedRecently",
                () -> sqs.createQueue(r -> r.queueName("mail")));
    }

    static void refusals() {
        String url = sqs.getQueueUrl(r -> r.queueName("jobs")).queueUrl();
        refused(QueueDoesNotExistException.class, "AWS.SimpleQueueService.NonExistentQueue",
                () -> sqs.getQueueUrl(r -> r.queueName("nothing")));
        refused(ReceiptHandleIsInvalidException.class, "ReceiptHandleIsInvalid",
                () -> sqs.deleteMessage(r -> r.queueUrl(url).receiptHandle("x")));
        refused(EmptyBatchRequestException.class, "AWS.SimpleQueueService.EmptyBatchRequest",
                () -> sqs.deleteMessageBatch(r -> r.queueUrl(url).entries(List.of())));
        refused(SqsException.class, "InvalidParameterValue",
                () -> sqs.receiveMessage(r -> r.queueUrl(url).maxNumberOfMessages(11)));
    }

    public static void main(String[] args) {
        messages();
        batches();
        queues();
        refusals();
        System.out.println("SDK for Java: all parts passed");
    }
}
