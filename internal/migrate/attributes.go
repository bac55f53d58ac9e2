package migrate

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tendril/queue"
)

var copiedAttributes = []string{"VisibilityTimeout", "DelaySeconds", "MessageRetentionPeriod", "ReceiveMessageWaitTimeSeconds",
	"MaximumMessageSize", "FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"}

// lostAttributes contain accounts, keys or addresses, or depend on a key.
var lostAttributes = []string{"Policy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "RedriveAllowPolicy"}

// Attributes returns the attributes for a copy of a queue, without the redrive policy, and the names of attributes that
// cannot be copied.
func Attributes(source map[string]string) (create map[string]string, missing []string) {
	create = map[string]string{}
	for _, name := range copiedAttributes {
		if value := source[name]; value != "" {
			create[name] = value
		}
	}

	if create["MaximumMessageSize"] == strconv.Itoa(queue.MaxMessageSize) {
		delete(create, "MaximumMessageSize") // some servers reject this value
	}

	for _, name := range lostAttributes {
		if source[name] != "" {
			missing = append(missing, name)
		}
	}
	return create, missing
}

// RedrivePolicy returns a redrive policy in JSON. arn is the dead-letter queue's.
func RedrivePolicy(arn string, maxReceives int) string {
	policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": arn, "maxReceiveCount": maxReceives})
	return string(policy)
}

// Differing returns the sorted names of attributes that differ from wanted.
func Differing(wanted, has map[string]string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !strings.EqualFold(wanted[name], has[name]) {
			names = append(names, name)
		}
	}
	return names
}
