package broker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"tendril/queue"
)

// settings are the attributes of a queue, read.
type settings struct {
	fifo                               bool
	visibility, delay, retention, wait time.Duration
	maxSize                            int // bytes
	contentDedup                       bool
	dedupPerGroup                      bool
	redrive                            *redrivePolicy // nil for none
	allow                              *allowPolicy   // nil means all
}

// numeric are the attributes that hold a number, with their ranges and
// defaults.
var numeric = map[string]struct {
	min, max, fallback int
	set                func(*settings, int)
}{
	"VisibilityTimeout":             {0, 43_200, 30, func(s *settings, n int) { s.visibility = seconds(n) }},
	"DelaySeconds":                  {0, 900, 0, func(s *settings, n int) { s.delay = seconds(n) }},
	"MessageRetentionPeriod":        {60, 1_209_600, 345_600, func(s *settings, n int) { s.retention = seconds(n) }},
	"MaximumMessageSize":            {1024, maxMessageSize, maxMessageSize, func(s *settings, n int) { s.maxSize = n }},
	"ReceiveMessageWaitTimeSeconds": {0, 20, 0, func(s *settings, n int) { s.wait = seconds(n) }},
	"KmsDataKeyReusePeriodSeconds":  {60, 86_400, 300, func(*settings, int) {}},
}

// maxMessageSize is the most that a message, and a batch, may weigh: 1 MiB.
const maxMessageSize = 1 << 20

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// parseSettings reads attributes as they were given to CreateQueue and
// SetQueueAttributes. Errors are InvalidAttributeName and
// InvalidAttributeValue with the texts of SQS.
func parseSettings(fifo bool, attributes map[string]string) (settings, error) {
	s := settings{fifo: fifo}
	for _, n := range numeric {
		n.set(&s, n.fallback)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if err := s.apply(name, attributes[name]); err != nil {
			return s, err
		}
	}
	return s, s.checkTogether(attributes)
}

// apply reads one attribute.
func (s *settings) apply(name, value string) (err error) {
	if n, ok := numeric[name]; ok {
		v, err := strconv.Atoi(value)
		if err != nil || v < n.min || v > n.max {
			return errValue(name)
		}
		n.set(s, v)
		return nil
	}
	switch name {
	case "Policy", "KmsMasterKeyId":
		return nil
	case "SqsManagedSseEnabled":
		_, err = parseFlag(name, value)
	case "RedrivePolicy":
		s.redrive, err = parseRedrivePolicy(value)
	case "RedriveAllowPolicy":
		s.allow, err = parseAllowPolicy(value)
	default:
		return s.applyFIFO(name, value)
	}
	return err
}

// applyFIFO reads an attribute that only FIFO queues have.
func (s *settings) applyFIFO(name, value string) (err error) {
	unknown := queue.Errorf(queue.CodeInvalidAttributeName, "Unknown Attribute %s.", clip(name))
	switch {
	case !slices.Contains([]string{"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope",
		"FifoThroughputLimit"}, name):
		return unknown
	case !s.fifo:
		return unknown
	}
	switch name {
	case "FifoQueue":
		if value != "true" {
			return errValue(name)
		}
	case "ContentBasedDeduplication":
		s.contentDedup, err = parseFlag(name, value)
	case "DeduplicationScope":
		s.dedupPerGroup, err = parseChoice(name, value, "queue", "messageGroup")
	case "FifoThroughputLimit":
		_, err = parseChoice(name, value, "perQueue", "perMessageGroupId")
	}
	return err
}

// checkTogether finds attributes that exclude each other.
func (s *settings) checkTogether(attributes map[string]string) error {
	if attributes["KmsMasterKeyId"] != "" && attributes["SqsManagedSseEnabled"] == "true" {
		return queue.Errorf(queue.CodeInvalidAttributeValue,
			"You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
	}
	if attributes["FifoThroughputLimit"] == "perMessageGroupId" && !s.dedupPerGroup {
		return queue.Errorf(queue.CodeInvalidAttributeValue,
			"Invalid value for the parameter FifoThroughputLimit. Reason: perMessageGroupId needs DeduplicationScope "+
				"messageGroup.")
	}
	return nil
}

func errValue(name string) error {
	return queue.Errorf(queue.CodeInvalidAttributeValue, "Invalid value for the parameter %s.", name)
}

func parseFlag(name, value string) (bool, error) {
	return parseChoice(name, value, "false", "true")
}

// parseChoice reports whether the value is on; it must be that or off.
func parseChoice(name, value, off, on string) (bool, error) {
	if value != off && value != on {
		return false, errValue(name)
	}
	return value == on, nil
}

// mergeAttributes returns the attributes after a change. An empty value takes
// a policy or a key away; a KMS key turns the other encryption off.
func mergeAttributes(old, change map[string]string) map[string]string {
	merged := maps.Clone(old)
	if merged == nil {
		merged = map[string]string{}
	}
	if change["KmsMasterKeyId"] != "" {
		merged["SqsManagedSseEnabled"] = "false"
	}
	if change["SqsManagedSseEnabled"] == "true" && change["KmsMasterKeyId"] == "" {
		delete(merged, "KmsMasterKeyId")
	}
	for name, value := range change {
		merged[name] = value
		removable := name == "Policy" || name == "RedrivePolicy" || name == "RedriveAllowPolicy" || name == "KmsMasterKeyId"
		if value == "" && removable {
			delete(merged, name)
		}
	}
	return merged
}

// effectiveAttributes fills in the defaults.
func effectiveAttributes(fifo bool, given map[string]string) map[string]string {
	all := map[string]string{"SqsManagedSseEnabled": "true"}
	for name, n := range numeric {
		all[name] = strconv.Itoa(n.fallback)
	}
	if fifo {
		all["FifoQueue"], all["ContentBasedDeduplication"] = "true", "false"
		all["DeduplicationScope"], all["FifoThroughputLimit"] = "queue", "perQueue"
	}
	maps.Copy(all, given)
	if all["KmsMasterKeyId"] == "" {
		delete(all, "KmsDataKeyReusePeriodSeconds")
	}
	return all
}

// differing returns the name of an attribute whose wanted value is not the
// current one; "" when all are the same.
func differing(current, wanted map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !sameValue(current[name], wanted[name]) {
			return name
		}
	}
	return ""
}

// sameValue compares attribute values: policies by what they say.
func sameValue(a, b string) bool {
	var x, y any
	if a == b || json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}
