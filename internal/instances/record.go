package instances

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"tendril/internal/autoscale"
	"tendril/queue"
)

// The intervals of records.
const (
	// Heartbeat is the longest time between two writes of a record. Each wait is up to a tenth shorter.
	Heartbeat = time.Minute
	// ReadInterval is how often the leader reads the records.
	ReadInterval = 20 * time.Second
	// FreshFor is how long a record counts after its last change: a heartbeat and a read, with room for one slow call.
	FreshFor = 90 * time.Second
	// ForgetAfter is how long an unreachable instance keeps its slot.
	ForgetAfter = 10 * time.Minute
)

// Limits of a record, so that it stays within one write unit of DynamoDB in most cases and within 16 KiB always.
const (
	maxCauses = 5
	maxCause  = 300
	maxQueues = 50
	maxText   = 512
)

// Record describes one instance. Fields that a version does not know are ignored.
type Record struct {
	// ID differs for every start of tendril. Name is the host and process id, for people. Member is the instance's id in
	// its Auto Scaling group, "" outside of groups.
	ID     string `json:"id"`
	Name   string `json:"name"`
	Member string `json:"member,omitempty"`
	// Console is the console's address, host:port, as the instance itself names it; "" if off.
	Console string `json:"console,omitempty"`
	// Version is tendril's, AppVersion the app's.
	Version    string    `json:"version"`
	AppVersion string    `json:"app_version,omitempty"`
	StartedAt  time.Time `json:"started_at"`
	// State is a state constant of package api, Health a color, and Causes the causes of that color, at most five.
	State  string   `json:"state"`
	Health string   `json:"health,omitempty"`
	Causes []string `json:"causes,omitempty"`
	// PausedQueues are the names of queues whose receiving is paused, at most fifty.
	PausedQueues []string `json:"paused_queues,omitempty"`
	Deploying    bool     `json:"deploying,omitempty"`

	Load Load `json:"load"`
	// WrittenAt is the writer's clock, which may be wrong.
	WrittenAt time.Time `json:"written_at"`
}

// Load is the part of a record that changes all the time. It is written with the heartbeat.
type Load struct {
	autoscale.Sample
	// OldestDelivery is the age of the longest running delivery, in seconds; 0 for none.
	OldestDelivery int `json:"oldest_delivery_seconds,omitempty"`
}

// clip limits the texts and lists of a record.
func (r Record) clip() Record {
	r.Causes = r.Causes[:min(len(r.Causes), maxCauses)]
	r.PausedQueues = r.PausedQueues[:min(len(r.PausedQueues), maxQueues)]
	causes := make([]string, len(r.Causes))
	for i, cause := range r.Causes {
		causes[i] = clipText(cause, maxCause)
	}
	r.Causes = causes
	for _, text := range []*string{&r.Name, &r.Member, &r.Console, &r.Version, &r.AppVersion} {
		*text = clipText(*text, maxText)
	}
	return r
}

func clipText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// status returns the part of a record whose changes are written at once, in a form to compare. The texts of causes
// contain numbers that change all the time.
func (r Record) status() string {
	r.Causes = nil
	text, _ := json.Marshal(r) // has no values that cannot be written
	return string(text)
}

// lease returns the record as the content of its slot.
func (r Record) lease(version string) queue.Lease {
	text, _ := json.Marshal(r) // as in status
	return queue.Lease{Owner: r.Name, Version: version, Duration: FreshFor, Data: string(text)}
}

// recordOf reads the content of a slot.
func recordOf(slot int, l queue.Lease) (r Record, err error) {
	if err := json.Unmarshal([]byte(l.Data), &r); err != nil {
		return r, fmt.Errorf("reading the record of instance %d: %w", slot, err)
	}
	return r, nil
}
