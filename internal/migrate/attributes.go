package migrate

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tendril/queue"
)

// carried lists the attributes that are copied.
var carried = []string{"VisibilityTimeout", "DelaySeconds", "MessageRetentionPeriod", "ReceiveMessageWaitTimeSeconds",
	"MaximumMessageSize", "FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"}

// lost lists attributes that contain accounts, keys or addresses and so cannot be copied.
var lost = []string{"Policy", "KmsMasterKeyId", "RedriveAllowPolicy"}

// Attributes returns the attributes for the copy of a queue, without the redrive policy, and the names of those that
// cannot be copied.
func Attributes(source map[string]string) (create map[string]string, missing []string) {
	create = map[string]string{}
	for _, name := range carried {
		if value := source[name]; value != "" {
			create[name] = value
		}
	}
	if create["MaximumMessageSize"] == strconv.Itoa(queue.MaxMessageSize) {
		delete(create, "MaximumMessageSize") // not every server supports the size of SQS
	}
	for _, name := range lost {
		if source[name] != "" {
			missing = append(missing, name)
		}
	}
	return create, missing
}

// RedrivePolicy returns a redrive policy for the dead-letter queue with an ARN.
func RedrivePolicy(arn string, maxReceives int) string {
	policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": arn, "maxReceiveCount": maxReceives}) // cannot fail
	return string(policy)
}

// Differing returns the names of attributes whose values differ from wanted.
func Differing(wanted, has map[string]string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !strings.EqualFold(wanted[name], has[name]) {
			names = append(names, name)
		}
	}
	return names
}
