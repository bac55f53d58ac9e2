package broker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/internal/access"
	"tendril/queue"
)

type settings struct {
	fifo                               bool
	visibility, delay, retention, wait time.Duration
	maxSize                            int // in bytes
	contentDedup                       bool
	dedupPerGroup                      bool
	redrive                            *redrivePolicy // may be nil
	allow                              *allowPolicy   // nil for all queues
	policy                             *access.Policy // may be nil
}

type attribute struct {
	fallback  string // "" for no default
	fifo      bool   // only on FIFO queues
	removable bool
	read      func(s *settings, name, value string) error
	// canonical returns the form that is stored, compared and returned. If nil, the value stays as given.
	canonical func(value string) string
}

// Read-only.
var settable = map[string]attribute{
	"VisibilityTimeout": inSeconds(30, 0, 43_200, func(s *settings) *time.Duration { return &s.visibility }),
	"DelaySeconds":      inSeconds(0, 0, 900, func(s *settings) *time.Duration { return &s.delay }),
	"MessageRetentionPeriod": inSeconds(345_600, 60, 1_209_600,
		func(s *settings) *time.Duration { return &s.retention }),
	"ReceiveMessageWaitTimeSeconds": inSeconds(0, 0, 20, func(s *settings) *time.Duration { return &s.wait }),
	"MaximumMessageSize": integer(queue.MaxMessageSize, 1024, queue.MaxMessageSize,
		func(s *settings, n int) { s.maxSize = n }),
	"KmsDataKeyReusePeriodSeconds": integer(300, 60, 86_400, func(*settings, int) {}),
	"KmsMasterKeyId": {removable: true, read: func(_ *settings, name, value string) error {
		if len(value) > maxKeyID {
			return errValue(name)
		}
		return nil
	}},
	"Policy": {removable: true, read: func(s *settings, name, value string) (err error) {
		if _, err := parsePolicy(value); value != "" && (err != nil || len(value) > maxPolicy) {
			return errValue(name)
		}
		if s.policy, err = access.ParsePolicy(value); err != nil {
			return queue.Errorf(queue.CodeInvalidAttributeValue, "Invalid value for the parameter %s. Reason: %w.", name, err)
		}
		return nil
	}},
	"SqsManagedSseEnabled": {fallback: "true", read: choice("false", "true", func(*settings, bool) {}),
		canonical: strings.ToLower},
	"RedrivePolicy": {removable: true, canonical: canonicalRedrive, read: func(s *settings, name, value string) (err error) {
		s.redrive, err = parseRedrivePolicy(name, value)
		return err
	}},
	"RedriveAllowPolicy": {removable: true, read: func(s *settings, name, value string) (err error) {
		s.allow, err = parseAllowPolicy(name, value)
		return err
	}},
	"FifoQueue": {fifo: true, fallback: "true", read: choice("true", "true", func(*settings, bool) {}),
		canonical: strings.ToLower},
	"ContentBasedDeduplication": {fifo: true, fallback: "false", canonical: strings.ToLower,
		read: choice("false", "true", func(s *settings, on bool) { s.contentDedup = on })},
	"DeduplicationScope": {fifo: true, fallback: "queue",
		read: choice("queue", "messageGroup", func(s *settings, on bool) { s.dedupPerGroup = on })},
	"FifoThroughputLimit": {fifo: true, fallback: "perQueue",
		read: choice("perQueue", "perMessageGroupId", func(*settings, bool) {})},
}

// AWS KMS limits the ID, alias or ARN of a key to 2,048 bytes.
const maxKeyID = 2048

// SQS has its own error text for these on a standard queue. Read-only.
var forHighThroughput = []string{"DeduplicationScope", "FifoThroughputLimit"}

// As in SQS, booleans are in lower case, and numbers have no plus sign or leading zeros.
func canonicalAttributes(given map[string]string) map[string]string {
	canonical := maps.Clone(given)
	for name, value := range given {
		if a := settable[name]; a.canonical != nil {
			canonical[name] = a.canonical(value)
		}
	}
	return canonical
}

func integer(fallback, least, most int, set func(*settings, int)) attribute {
	read := func(s *settings, name, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return errValue(name)
		}
		set(s, n)
		return nil
	}
	canonical := func(value string) string {
		n, err := strconv.Atoi(value)
		if err != nil {
			return value
		}
		return strconv.Itoa(n)
	}
	return attribute{fallback: strconv.Itoa(fallback), read: read, canonical: canonical}
}

func inSeconds(fallback, least, most int, field func(*settings) *time.Duration) attribute {
	return integer(fallback, least, most, func(s *settings, n int) { *field(s) = time.Duration(n) * time.Second })
}

func choice(off, on string, set func(s *settings, on bool)) func(s *settings, name, value string) error {
	return func(s *settings, name, value string) error {
		if value != off && value != on {
			return errValue(name)
		}
		set(s, value == on)
		return nil
	}
}

func errValue(name string) error {
	return queue.Errorf(queue.CodeInvalidAttributeValue, "Invalid value for the parameter %s.", name)
}

func parseSettings(fifo bool, given map[string]string) (settings, error) {
	s := settings{fifo: fifo}
	for name, value := range effectiveAttributes(fifo, nil) {
		_ = settable[name].read(&s, name, value)
	}

	for _, name := range slices.Sorted(maps.Keys(given)) {
		a, known := settable[name]
		if !fifo && slices.Contains(forHighThroughput, name) {
			return s, queue.Errorf(queue.CodeInvalidAttributeName,
				"You can specify the %s only when FifoQueue is set to true.", name)
		}
		if !known || a.fifo && !fifo {
			return s, queue.Errorf(queue.CodeInvalidAttributeName, "Unknown Attribute %s.", clip(name))
		}
		if err := a.read(&s, name, given[name]); err != nil {
			return s, err
		}
	}
	return s, s.checkTogether(given)
}

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

func mergeAttributes(old, change map[string]string) map[string]string {
	merged := maps.Clone(old)
	if merged == nil {
		merged = map[string]string{}
	}

	// A queue has one type of encryption.
	if change["KmsMasterKeyId"] != "" {
		merged["SqsManagedSseEnabled"] = "false"
	} else if change["SqsManagedSseEnabled"] == "true" {
		delete(merged, "KmsMasterKeyId")
	}

	for name, value := range change {
		merged[name] = value
		if value == "" && settable[name].removable {
			delete(merged, name)
		}
	}
	return merged
}

func effectiveAttributes(fifo bool, given map[string]string) map[string]string {
	all := map[string]string{}
	for name, a := range settable {
		if a.fallback != "" && (fifo || !a.fifo) {
			all[name] = a.fallback
		}
	}
	maps.Copy(all, given)
	if all["KmsMasterKeyId"] == "" {
		delete(all, "KmsDataKeyReusePeriodSeconds")
	}
	return all
}

func firstDifference(current, wanted map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !sameValue(current[name], wanted[name]) {
			return name
		}
	}
	return ""
}

func sameValue(a, b string) bool {
	var x, y any
	if a == b || json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

type redrivePolicy struct {
	target string
	max    int32 // receive count, 1 to 1000
}

// allowPolicy is a RedriveAllowPolicy.
type allowPolicy struct {
	all     bool
	sources []string // ARNs, unless all is true
}

func (p *allowPolicy) permits(source string) bool {
	return p == nil || p.all || slices.Contains(p.sources, source)
}

const (
	defaultMaxReceives = 10
	maxReceivesLimit   = 1000
	maxSources         = 10
)

var (
	redriveMembers = []string{"deadLetterTargetArn", "maxReceiveCount"}
	allowMembers   = []string{"redrivePermission", "sourceQueueArns"}
)

// parseRedrivePolicy returns nil for "". maxReceiveCount may be a string.
func parseRedrivePolicy(name, value string) (*redrivePolicy, error) {
	if value == "" {
		return nil, nil
	}

	refuse := func(reason string) (*redrivePolicy, error) { return nil, errParameter(name, value, reason) }
	var p struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	if reason := decodePolicy("redrive policy", value, &p, redriveMembers); reason != "" {
		return refuse(reason)
	}
	if p.Target == "" {
		return refuse("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	}

	if len(p.Max) == 0 {
		return &redrivePolicy{target: p.Target, max: defaultMaxReceives}, nil
	}
	text := strings.Trim(string(p.Max), `"`)
	most, err := strconv.Atoi(text)
	if err != nil || most < 1 || most > maxReceivesLimit {
		return refuse(fmt.Sprintf("Invalid value for maxReceiveCount: %s, valid values are from 1 to %d both inclusive.",
			clip(text), maxReceivesLimit))
	}
	return &redrivePolicy{target: p.Target, max: int32(most)}, nil
}

// reason is SQS's reason for rejecting the policy, or "".
func decodePolicy(kind, value string, policy any, members []string) (reason string) {
	unsupported := "Amazon SQS can't create the " + kind + ", as it's in an unsupported format."
	var given map[string]json.RawMessage
	if json.Unmarshal([]byte(value), &given) != nil {
		return unsupported
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(members, name) {
			return fmt.Sprintf("Only following attributes are supported: [%s].", strings.Join(members, ", "))
		}
		if string(given[name]) == "null" {
			return fmt.Sprintf("Invalid value for %s: null.", name)
		}
	}
	if json.Unmarshal([]byte(value), policy) != nil {
		return unsupported
	}
	return ""
}

func canonicalRedrive(value string) string {
	policy, err := parseRedrivePolicy("", value)
	if _, given := queue.ParseRedrivePolicy(value); err != nil || policy == nil || given == 0 {
		return value
	}
	return string(rawJSON(struct {
		Target string `json:"deadLetterTargetArn"`
		Max    int32  `json:"maxReceiveCount"`
	}{policy.target, policy.max}))
}

// knownMembers removes unknown and null members, which earlier versions accepted.
func knownMembers(value string, members []string) string {
	var stored map[string]json.RawMessage
	if json.Unmarshal([]byte(value), &stored) != nil {
		return value
	}
	all := len(stored)
	maps.DeleteFunc(stored, func(name string, member json.RawMessage) bool {
		return !slices.Contains(members, name) || string(member) == "null"
	})
	if len(stored) == all {
		return value
	}
	return string(rawJSON(stored))
}

func parseAllowPolicy(name, value string) (*allowPolicy, error) {
	if value == "" {
		return nil, nil
	}

	refuse := func(reason string) (*allowPolicy, error) { return nil, errParameter(name, value, reason) }
	var p struct {
		Permission string   `json:"redrivePermission"`
		Sources    []string `json:"sourceQueueArns"`
	}
	if reason := decodePolicy("redrive allow policy", value, &p, allowMembers); reason != "" {
		return refuse(reason)
	}

	byQueue := p.Permission == "byQueue"
	switch {
	case p.Permission != "allowAll" && p.Permission != "denyAll" && !byQueue:
		return refuse("redrivePermission must be allowAll, denyAll or byQueue.")
	case byQueue && (len(p.Sources) == 0 || len(p.Sources) > maxSources || slices.Contains(p.Sources, "")):
		return refuse(fmt.Sprintf("byQueue needs 1 to %d sourceQueueArns.", maxSources))
	case !byQueue && len(p.Sources) > 0:
		return refuse("sourceQueueArns goes with byQueue only.")
	}
	return &allowPolicy{all: p.Permission == "allowAll", sources: p.Sources}, nil
}

func (o *Options) arn(name string) string {
	return "arn:aws:sqs:" + o.Region + ":" + o.AccountID + ":" + name
}

// localARN changes a stored ARN, which may be "", to this broker's account and region.
func (o *Options) localARN(stored string) string {
	if stored == "" {
		return ""
	}
	return o.arn(queue.NameInARN(stored))
}

func (o *Options) localizePolicies(attributes map[string]string) {
	for name, members := range map[string][]string{"RedrivePolicy": redriveMembers, "RedriveAllowPolicy": allowMembers} {
		if stored := attributes[name]; stored != "" {
			attributes[name] = knownMembers(stored, members)
		}
	}
	policy, err := parseRedrivePolicy("RedrivePolicy", attributes["RedrivePolicy"])
	if err != nil || policy == nil {
		return
	}
	attributes["RedrivePolicy"] = strings.Replace(attributes["RedrivePolicy"], policy.target, o.localARN(policy.target), 1)
}
