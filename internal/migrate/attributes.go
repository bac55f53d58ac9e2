package migrate

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tendril/queue"
)

// carried are the attributes of a queue that its copy gets as they are. The list is never written to.
var carried = []string{"VisibilityTimeout", "DelaySeconds", "MessageRetentionPeriod", "ReceiveMessageWaitTimeSeconds",
	"MaximumMessageSize", "FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"}

// lost are those that mean nothing, or something else, in another place: they name accounts, keys and addresses.
var lost = []string{"Policy", "KmsMasterKeyId", "RedriveAllowPolicy"}

// Attributes returns the attributes that the copy of a queue is created with, without its redrive policy, and the names
// of those that cannot be carried over.
func Attributes(source map[string]string) (create map[string]string, missing []string) {
	create = map[string]string{}
	for _, name := range carried {
		if value := source[name]; value != "" {
			create[name] = value
		}
	}
	if create["MaximumMessageSize"] == strconv.Itoa(queue.MaxMessageSize) {
		delete(create, "MaximumMessageSize") // not every server takes as much as SQS does
	}
	for _, name := range lost {
		if source[name] != "" {
			missing = append(missing, name)
		}
	}
	return create, missing
}

// RedrivePolicy is the policy that sends dead letters to the queue of an ARN.
func RedrivePolicy(arn string, maxReceives int) string {
	policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": arn, "maxReceiveCount": maxReceives}) // cannot fail
	return string(policy)
}

// Differing returns the names of attributes that a queue which exists has otherwise than its copy would get them.
func Differing(wanted, has map[string]string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !strings.EqualFold(wanted[name], has[name]) {
			names = append(names, name)
		}
	}
	return names
}
