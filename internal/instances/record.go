package instances

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tendril/internal/autoscale"
	"tendril/internal/observe/health"
	"tendril/queue"
)

const (
	// Heartbeat is the maximum time between two writes of a record. Each interval is up to a tenth shorter.
	Heartbeat = time.Minute
	// ReadInterval is how often the leader reads the records.
	ReadInterval = 20 * time.Second
	// FreshFor is how long an instance counts as reachable after its record has changed. It covers a heartbeat, a read
	// and a slow call.
	FreshFor = 90 * time.Second
	// ForgetAfter is how long an unreachable instance keeps its slot.
	ForgetAfter = 10 * time.Minute
)

// These limits keep a record within 16 KiB, and usually within one write unit of DynamoDB.
const (
	maxCauses      = 5
	maxCause       = 300
	maxLabel       = 100
	maxQueues      = 50
	maxUnreachable = 50
	maxText        = 512
)

// Record describes an instance. Readers ignore unknown fields.
type Record struct {
	// ID is new each time tendril starts. Name contains the host and the process ID, for display. Member is the
	// instance's ID in its Auto Scaling group, or "".
	ID     string `json:"id"`
	Name   string `json:"name"`
	Member string `json:"member,omitempty"`
	// Console is the console's host:port, as seen from other machines if they can reach it; "" if the console is off.
	Console string `json:"console,omitempty"`
	// Certificate is the fingerprint of the console's certificate; "" for plain HTTP. Host identifies the machine and
	// its loopback address; "" if the instance does not answer other instances.
	Certificate string `json:"certificate,omitempty"`
	Host        string `json:"host,omitempty"`
	// Version is tendril's version, AppVersion the app's.
	Version    string    `json:"version"`
	AppVersion string    `json:"app_version,omitempty"`
	StartedAt  time.Time `json:"started_at"`
	// State is one of the state constants of package api. Causes contains up to five causes of the health status;
	// earlier versions sent only their texts.
	State  string         `json:"state"`
	Health health.Status  `json:"health,omitempty"`
	Causes []health.Cause `json:"details,omitempty"`
	// PausedQueues names up to fifty paused queues.
	PausedQueues []string `json:"paused_queues,omitempty"`
	Deploying    bool     `json:"deploying,omitempty"`
	// Follows means that the instance applies the desired state. Revision is the latest revision that it has applied.
	Follows  bool  `json:"follows,omitempty"`
	Revision int64 `json:"revision,omitempty"`
	// Applies lists the parts of the desired state, besides pauses, that the instance applies, such as [PartSettings].
	Applies []string `json:"applies,omitempty"`
	// SettingsRevision is the revision of the settings that the instance has applied or rejected. Rejected is the
	// reason for a rejection, or "".
	SettingsRevision int64     `json:"settings_revision,omitempty"`
	Rejected         string    `json:"rejected,omitempty"`
	App              AppReport `json:"app,omitzero"`

	// Only the leader sets these: the health of all instances, and the IDs of up to fifty that it cannot reach.
	Environment *health.Environment `json:"environment,omitempty"`
	Unreachable []string            `json:"unreachable,omitempty"`

	Load Load `json:"load"`
	// WrittenAt is from the writer's clock, which may be wrong.
	WrittenAt time.Time `json:"written_at"`
}

// Parts of the desired state, besides pauses, that an instance can apply.
const (
	PartSettings = "settings"
	// PartBatches means that the instance waits for its batch while settings are rolled out.
	PartBatches = "settings-batches"
	// PartQueueSettings means that the instance applies options of individual queues.
	PartQueueSettings = "queue-settings"
	PartApp           = "app"
)

// Load is the part of a record that changes constantly. It is updated with each write but does not cause one.
type Load struct {
	autoscale.Sample
	// OldestDelivery is the age in seconds of the oldest delivery in flight; 0 if idle.
	OldestDelivery int `json:"oldest_delivery_seconds,omitempty"`
}

func (r Record) clip() Record {
	r.Causes = r.Causes[:min(len(r.Causes), maxCauses)]
	r.PausedQueues = r.PausedQueues[:min(len(r.PausedQueues), maxQueues)]
	r.Unreachable = r.Unreachable[:min(len(r.Unreachable), maxUnreachable)]
	r.Causes = slices.Clone(r.Causes)
	for i := range r.Causes {
		c := &r.Causes[i]
		c.Text, c.Remedy = clipText(c.Text, maxCause), clipText(c.Remedy, maxLabel)
		c.Kind, c.Name = clipText(c.Kind, maxLabel), clipText(c.Name, maxLabel)
	}
	for _, text := range []*string{&r.Name, &r.Member, &r.Console, &r.Version, &r.AppVersion, &r.Rejected, &r.App.Error} {
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

// sameStatus ignores the causes, whose texts contain constantly changing numbers. Neither record has its load yet.
func (r Record) sameStatus(other Record) bool {
	status := func(r Record) string {
		r.Causes, r.Environment = nil, nil
		text, _ := json.Marshal(r) // cannot fail
		return string(text)
	}
	return status(r) == status(other) && r.Environment.Same(other.Environment)
}

// The signature is a field of the record, so that earlier versions and instances without a key can read the record.
const signatureMark = `,"signature":"`

// lease signs the record, unless the key is "". The signature covers the slot's name, which includes the environment,
// and the version.
func (r Record) lease(slot, version string, key FleetKey) queue.Lease {
	data, _ := json.Marshal(r) // cannot fail
	text := string(data)
	if key != "" {
		signature := key.sign(instanceRecord, signedText(slot, version, text))
		text = strings.TrimSuffix(text, "}") + signatureMark + signature + `"}`
	}
	return queue.Lease{Owner: r.Name, Version: version, Duration: FreshFor, Data: text}
}

func signedText(slot, version, record string) string { return slot + "\n" + version + "\n" + record }

// authenticate accepts every record if the key is "".
func (k FleetKey) authenticate(slot string, l queue.Lease) error {
	if k == "" {
		return nil
	}
	at := strings.LastIndex(l.Data, signatureMark)
	if at < 0 {
		return ErrUnsigned
	}
	record, signature := l.Data[:at]+"}", strings.TrimSuffix(l.Data[at+len(signatureMark):], `"}`)
	if !k.signed(instanceRecord, signedText(slot, l.Version, record), signature) {
		return ErrForged
	}
	return nil
}

// HealthStatus returns the health for [health.EnvironmentOf].
func (r *Record) HealthStatus() health.InstanceHealth {
	return health.InstanceHealth{Name: r.Name, Status: r.Health, Causes: r.Causes}
}

func recordOf(slot int, l queue.Lease) (r Record, err error) {
	if err := json.Unmarshal([]byte(l.Data), &r); err != nil {
		return r, fmt.Errorf("reading the record of instance %d: %w", slot, err)
	}
	return r, nil
}
