package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// OpenTelemetry's messaging conventions are not stable yet; only this file depends on them.
const (
	schemaURL = semconv.SchemaURL

	metricOperationDuration = "messaging.client.operation.duration"
	metricConsumed          = "messaging.client.consumed.messages"
	metricProcessDuration   = "messaging.process.duration"

	keyOperation    = semconv.MessagingOperationNameKey
	keyDestination  = semconv.MessagingDestinationNameKey
	keyMessageID    = semconv.MessagingMessageIDKey
	keyBatchSize    = semconv.MessagingBatchMessageCountKey
	keyQueueURL     = semconv.AWSSQSQueueURLKey
	keyErrorType    = semconv.ErrorTypeKey
	keyStatus       = semconv.HTTPResponseStatusCodeKey
	keyMethod       = semconv.HTTPRequestMethodKey
	keyURL          = semconv.URLFullKey
	keyFunction     = semconv.FaaSInvokedNameKey
	keyInstance     = semconv.ServiceInstanceIDKey
	keyService      = semconv.ServiceNameKey
	keyVersion      = semconv.ServiceVersionKey
	keyReceiveCount = attribute.Key("tendril.message.receive_count")
	keyOutcome      = attribute.Key("tendril.outcome")

	operationReceive = "receive"
	operationProcess = "process"
	operationDelete  = "delete"
	operationChange  = "change_visibility"
)

func system() attribute.KeyValue { return semconv.MessagingSystemAWSSQS }

func operationType(operation string) attribute.KeyValue {
	switch operation {
	case operationReceive:
		return semconv.MessagingOperationTypeReceive
	case operationProcess:
		return semconv.MessagingOperationTypeProcess
	}
	return semconv.MessagingOperationTypeSettle
}
