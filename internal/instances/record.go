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
	// Heartbeat is the maximum time between a record's writes.
	Heartbeat = time.Minute
	// ReadInterval is the time between the leader's reads of the records.
	ReadInterval = 20 * time.Second
	// FreshFor is how long an instance counts as reachable after its record has changed. It covers a heartbeat, a read
	// and a slow call.
	FreshFor = 90 * time.Second
	// ForgetAfter is how long an instance keeps its slot after its record last changed.
	ForgetAfter = 10 * time.Minute
)

// These limits keep a record below 16 KiB, and usually within one write unit of DynamoDB.
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
	// ID is new at each start. Name consists of the host and the process ID. Member is the ID in the Auto Scaling
	// group, or "".
	ID     string `json:"id"`
	Name   string `json:"name"`
	Member string `json:"member,omitempty"`
	// Console is the console's host:port for other machines; "" if it is off.
	Console string `json:"console,omitempty"`
	// Certificate is the fingerprint of the console's certificate; "" for plain HTTP. Host identifies the machine and
	// network namespace; "" if the instance does not answer other instances.
	Certificate string    `json:"certificate,omitempty"`
	Host        string    `json:"host,omitempty"`
	Version     string    `json:"version"`
	AppVersion  string    `json:"app_version,omitempty"`
	StartedAt   time.Time `json:"started_at"`
	// State is a state constant of package api. Causes from earlier versions have only texts.
	State        string         `json:"state"`
	Health       health.Status  `json:"health,omitempty"`
	Causes       []health.Cause `json:"details,omitempty"`
	PausedQueues []string       `json:"paused_queues,omitempty"`
	Deploying    bool           `json:"deploying,omitempty"`
	// Follows means that the instance applies the desired state. It has applied Revision.
	Follows  bool  `json:"follows,omitempty"`
	Revision int64 `json:"revision,omitempty"`
	// Applies lists the supported parts of the desired state, such as [PartSettings], except pauses.
	Applies []string `json:"applies,omitempty"`
	// SettingsRevision is the revision of the applied settings or, if Rejected is set, of the settings rejected for
	// that reason.
	SettingsRevision int64     `json:"settings_revision,omitempty"`
	Rejected         string    `json:"rejected,omitempty"`
	App              AppReport `json:"app,omitzero"`

	// Environment is the health of all instances. Unreachable lists the IDs of unreachable instances. Only the leader
	// sets both.
	Environment *health.Environment `json:"environment,omitempty"`
	Unreachable []string            `json:"unreachable,omitempty"`

	Load Load `json:"load"`
	// WrittenAt is the time on the writer's clock, which may be wrong.
	WrittenAt time.Time `json:"written_at"`
}

// Parts of the desired state that an instance can apply.
const (
	PartSettings = "settings"
	// PartBatches means that the instance waits for its batch of a rollout.
	PartBatches = "settings-batches"
	// PartQueueSettings means that the instance applies options of single queues.
	PartQueueSettings = "queue-settings"
	PartApp           = "app"
)

// Load changes constantly. Each write updates it, but a change of Load does not cause a write.
type Load struct {
	autoscale.Sample
	OldestDelivery int `json:"oldest_delivery_seconds,omitempty"`
}

func (r Record) clip() Record {
	r.Causes = slices.Clone(r.Causes[:min(len(r.Causes), maxCauses)])
	r.PausedQueues = r.PausedQueues[:min(len(r.PausedQueues), maxQueues)]
	r.Unreachable = r.Unreachable[:min(len(r.Unreachable), maxUnreachable)]
	for i := range r.Causes {
		c := &r.Causes[i]
		c.Text = clipText(c.Text, maxCause)
		c.Remedy = clipText(c.Remedy, maxLabel)
		c.Kind = clipText(c.Kind, maxLabel)
		c.Name = clipText(c.Name, maxLabel)
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

// sameStatus ignores Load, and Causes, whose texts contain changing numbers.
func (r Record) sameStatus(other Record) bool {
	status := func(r Record) string {
		r.Causes = nil
		r.Environment = nil
		r.Load = Load{}
		text, _ := json.Marshal(r)
		return string(text)
	}
	return status(r) == status(other) && r.Environment.Same(other.Environment)
}

// The signature is a field, so that earlier versions and instances without a key can read the record.
const signatureMark = `,"signature":"`

// lease's signature also covers the version and the slot's name, which includes the environment.
func (r Record) lease(slot, version string, key FleetKey) queue.Lease {
	data, _ := json.Marshal(r)
	text := string(data)
	if key != "" {
		signature := key.sign(instanceRecord, signedText(slot, version, text))
		text = strings.TrimSuffix(text, "}") + signatureMark + signature + `"}`
	}
	return queue.Lease{Owner: r.Name, Version: version, Duration: FreshFor, Data: text}
}

func signedText(slot, version, record string) string { return slot + "\n" + version + "\n" + record }

func (k FleetKey) authenticate(slot string, l queue.Lease) error {
	if k == "" {
		return nil
	}
	at := strings.LastIndex(l.Data, signatureMark)
	if at < 0 {
		return ErrUnsigned
	}
	record, signature := l.Data[:at]+"}", strings.TrimSuffix(l.Data[at+len(signatureMark):], `"}`)
	if !k.verify(instanceRecord, signedText(slot, l.Version, record), signature) {
		return ErrForged
	}
	return nil
}

// HealthStatus returns the instance's health for [health.EnvironmentOf].
func (r *Record) HealthStatus() health.InstanceHealth {
	return health.InstanceHealth{Name: r.Name, Status: r.Health, Causes: r.Causes}
}

func recordOf(slot int, l queue.Lease) (r Record, err error) {
	if err := json.Unmarshal([]byte(l.Data), &r); err != nil {
		return r, fmt.Errorf("reading the record of instance %d: %w", slot, err)
	}
	return r, nil
}
