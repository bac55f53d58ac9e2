package queue_test

import (
	"errors"
	"fmt"

	"tendril/queue"
)

// Queue errors have SQS error codes.
func ExampleError() {
	err := fmt.Errorf("sending: %w", queue.Errorf(queue.CodeStorageFull, "The disk is full."))
	fmt.Println(errors.Is(err, &queue.Error{Code: queue.CodeStorageFull}))
	// Output: true
}

// Attributes count toward the message size.
func ExampleOutgoing_Size() {
	m := queue.Outgoing{Body: "resize 17", Attributes: []queue.Attribute{{Name: "kind", Type: "String", Value: "image"}}}
	fmt.Println(m.Size(), "of", queue.MaxMessageSize, "bytes")
	// Output: 24 of 1048576 bytes
}

// A redrive policy names the dead-letter queue by its ARN.
func ExampleParseRedrivePolicy() {
	name, most := queue.ParseRedrivePolicy(`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:failed","maxReceiveCount":3}`)
	fmt.Println(name, most)
	// Output: failed 3
}
