package broker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tendril/queue"
)

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

// parseRedrivePolicy reads the attribute RedrivePolicy; "" is none. The count
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

// parseAllowPolicy reads the attribute RedriveAllowPolicy; "" is none.
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
