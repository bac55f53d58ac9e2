package broker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	"VisibilityTimeout":      {0, 43_200, 30, func(s *settings, n int) { s.visibility = seconds(n) }},
	"DelaySeconds":           {0, 900, 0, func(s *settings, n int) { s.delay = seconds(n) }},
	"MessageRetentionPeriod": {60, 1_209_600, 345_600, func(s *settings, n int) { s.retention = seconds(n) }},
	"MaximumMessageSize": {1024, queue.MaxMessageSize, queue.MaxMessageSize, func(s *settings,
		n int) {
		s.maxSize = n
	}},
	"ReceiveMessageWaitTimeSeconds": {0, 20, 0, func(s *settings, n int) { s.wait = seconds(n) }},
	"KmsDataKeyReusePeriodSeconds":  {60, 86_400, 300, func(*settings, int) {}},
}

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

// redrivePolicy says when and where messages are dead-lettered.
type redrivePolicy struct {
	target string // ARN
	max    int32  // receives before the move, 1 to 1000
}

// allowPolicy says which queues may use a queue as their dead-letter queue.
type allowPolicy struct {
	all     bool
	sources []string // ARNs, when not all
}

// permits reports whether the queue of an ARN may send dead letters; a nil
// policy permits all.
func (p *allowPolicy) permits(source string) bool {
	return p == nil || p.all || slices.Contains(p.sources, source)
}

const (
	defaultMaxReceives = 10
	mostReceives       = 1000
	mostSources        = 10
)

func errPolicy(name, value, reason string) error {
	return queue.Errorf(queue.CodeInvalidParameterValue, "Value %s for parameter %s is invalid. Reason: %s", clip(value),
		name, reason)
}

// parseRedrivePolicy reads the attribute RedrivePolicy; "" means no policy. The count
// may be a number or a string.
func parseRedrivePolicy(value string) (*redrivePolicy, error) {
	if value == "" {
		return nil, nil
	}
	var p struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	refuse := func(reason string) (*redrivePolicy, error) {
		return nil, errPolicy("RedrivePolicy", value, reason)
	}
	if json.Unmarshal([]byte(value), &p) != nil {
		return refuse("Amazon SQS can't create the redrive policy, as it's in an unsupported format.")
	}
	if p.Target == "" {
		return refuse("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	}
	most := defaultMaxReceives
	if text := strings.Trim(string(p.Max), `"`); len(p.Max) > 0 && text != "null" {
		var err error
		if most, err = strconv.Atoi(text); err != nil || most < 1 || most > mostReceives {
			return refuse(fmt.Sprintf("Invalid value for maxReceiveCount: %s, valid values are from 1 to %d both inclusive.",
				clip(text), mostReceives))
		}
	}
	return &redrivePolicy{target: p.Target, max: int32(most)}, nil
}

// parseAllowPolicy reads the attribute RedriveAllowPolicy; "" means no policy.
func parseAllowPolicy(value string) (*allowPolicy, error) {
	if value == "" {
		return nil, nil
	}
	var p struct {
		Permission string   `json:"redrivePermission"`
		Sources    []string `json:"sourceQueueArns"`
	}
	refuse := func(reason string) (*allowPolicy, error) {
		return nil, errPolicy("RedriveAllowPolicy", value, reason)
	}
	if json.Unmarshal([]byte(value), &p) != nil {
		return refuse("Amazon SQS can't create the redrive allow policy, as it's in an unsupported format.")
	}
	byQueue := p.Permission == "byQueue"
	switch {
	case p.Permission != "allowAll" && p.Permission != "denyAll" && !byQueue:
		return refuse("redrivePermission must be allowAll, denyAll or byQueue.")
	case byQueue && (len(p.Sources) == 0 || len(p.Sources) > mostSources):
		return refuse(fmt.Sprintf("byQueue needs 1 to %d sourceQueueArns.", mostSources))
	case !byQueue && len(p.Sources) > 0:
		return refuse("sourceQueueArns goes with byQueue only.")
	}
	return &allowPolicy{all: p.Permission == "allowAll", sources: p.Sources}, nil
}

// arn returns the Amazon resource name of a queue.
func (o *Options) arn(name string) string {
	return "arn:aws:sqs:" + o.Region + ":" + o.AccountID + ":" + name
}

// nameOf returns the name of the queue that an ARN of this broker names.
func (o *Options) nameOf(arn string) (string, bool) {
	return strings.CutPrefix(arn, o.arn(""))
}
