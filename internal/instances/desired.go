package instances

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/queue"
)

// Desired is the state that every instance of an environment should reach.
type Desired struct {
	Environment string `json:"environment"`
	// Revision increases by one with every change.
	Revision int64            `json:"revision"`
	Pauses   map[string]Pause `json:"pauses,omitempty"`
	Settings Settings         `json:"settings,omitzero"`
	// App is nil before the first version. It is replaced, never modified.
	App *App `json:"app,omitempty"`

	unknown unknownFields
}

// UnmarshalJSON keeps unknown fields.
func (d *Desired) UnmarshalJSON(text []byte) error {
	type plain Desired
	return d.unknown.decode(text, (*plain)(d))
}

// MarshalJSON includes unknown fields.
func (d Desired) MarshalJSON() ([]byte, error) {
	type plain Desired
	return d.unknown.encode(plain(d))
}

// Pause describes why, by whom and since when a queue is paused.
type Pause struct {
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`

	unknown unknownFields
}

// UnmarshalJSON also accepts a string, which earlier versions stored as the reason.
func (p *Pause) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &p.Reason) == nil {
		return nil
	}
	type plain Pause
	return p.unknown.decode(text, (*plain)(p))
}

// MarshalJSON includes unknown fields.
func (p Pause) MarshalJSON() ([]byte, error) {
	type plain Pause
	return p.unknown.encode(plain(p))
}

// Settings are options for all instances.
type Settings struct {
	// Revision is the revision of the desired state that set the options.
	Revision int64     `json:"revision"`
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at"`
	// Text has the format of a settings file. A rollback restores Previous.
	Text     string `json:"text,omitempty"`
	Previous string `json:"previous,omitempty"`
	// RolledBack is the reason for the rollback to these options, or "".
	RolledBack string `json:"rolled_back,omitempty"`
	// Rollout is nil unless a rollout in batches is in progress. It is replaced, never modified.
	Rollout *SettingsRollout `json:"rollout,omitempty"`

	unknown unknownFields
}

// UnmarshalJSON keeps unknown fields.
func (s *Settings) UnmarshalJSON(text []byte) error {
	type plain Settings
	return s.unknown.decode(text, (*plain)(s))
}

// MarshalJSON includes unknown fields.
func (s Settings) MarshalJSON() ([]byte, error) {
	type plain Settings
	return s.unknown.encode(plain(s))
}

// SettingsRollout is a rollout of settings in batches.
type SettingsRollout struct {
	How Rollout `json:"how"`
	// Instances with IDs up to Until use the new settings; others use Kept.
	Until string   `json:"until,omitempty"`
	Kept  Settings `json:"kept"`

	unknown unknownFields
}

// UnmarshalJSON keeps unknown fields.
func (r *SettingsRollout) UnmarshalJSON(text []byte) error {
	type plain SettingsRollout
	return r.unknown.decode(text, (*plain)(r))
}

// MarshalJSON includes unknown fields.
func (r SettingsRollout) MarshalJSON() ([]byte, error) {
	type plain SettingsRollout
	return r.unknown.encode(plain(r))
}

// For returns an instance's settings. id is "" before the instance has joined.
func (s *Settings) For(id string) Settings {
	if s.Rollout != nil && (id == "" || id > s.Rollout.Until) {
		return s.Rollout.Kept
	}
	return *s
}

// SetSettings replaces the settings during a [DesiredState.Change]. settled means that all instances have applied the
// current ones, so that a rollback can restore them.
func (d *Desired) SetSettings(text, by string, settled bool) {
	previous := d.Settings.Previous
	if settled {
		previous = d.Settings.Text
	}
	d.Settings = Settings{Revision: d.Revision, By: by, At: time.Now().UTC().Truncate(time.Second), Text: text,
		Previous: previous}
}

// RollOutSettings is like SetSettings, but in batches. Until its batch starts, an instance uses the settings for new
// instances.
func (d *Desired) RollOutSettings(text, by string, settled bool, how Rollout) {
	kept := d.Settings.For("")
	kept.Previous = ""
	d.SetSettings(text, by, settled)
	d.Settings.Rollout = &SettingsRollout{How: how, Kept: kept}
}

// AppliedBy reports whether all reachable and authenticated instances that support settings have applied them and no
// rollout is in progress.
func (s *Settings) AppliedBy(all []Instance) bool {
	return s.Rollout == nil && !slices.ContainsFunc(all, func(one Instance) bool {
		return one.Counts() && slices.Contains(one.Applies, PartSettings) &&
			(one.SettingsRevision != s.Revision || one.Rejected != "")
	})
}

// RollBackSettings restores the previous settings. why is the reason that the current ones failed.
func (d *Desired) RollBackSettings(why, by string) {
	d.SetSettings(d.Settings.Previous, by, false)
	d.Settings.RolledBack = why
}

// SettingsProgress describes the settings that an instance has applied or rejected.
type SettingsProgress struct {
	// Applied and Rejected are revisions of settings. Reason explains Rejected.
	Applied, Rejected int64
	Reason            string
}

// SettingsStep is an instance's next action on the settings.
type SettingsStep int

// Results of [SettingsProgress.Next].
const (
	NoStep SettingsStep = iota
	ApplySettings
	RollBackSettings
)

// Next returns the next step for s. A rejected rollback is not rolled back again.
func (p SettingsProgress) Next(s *Settings) SettingsStep {
	switch {
	case s.Revision == p.Applied:
		return NoStep
	case s.Revision != p.Rejected:
		return ApplySettings
	case s.RolledBack != "":
		return NoStep
	}
	return RollBackSettings
}

// Reasons to reject a stored state or record.
var (
	// ErrForged means that the signature was not made with this instance's fleet key.
	ErrForged = errors.New("it was not signed with this instance's fleet key: give all instances the same key")
	// ErrReplayed means that this instance has seen a later revision or version.
	ErrReplayed = errors.New("it is older than the one this instance has seen")
	// ErrDiverged means that two states have the same revision, for example after the registry was lost.
	ErrDiverged = errors.New("it differs from the one with the same revision that this instance has applied: the next " +
		"change of pauses, settings or the app replaces it")
	// ErrUnsigned means that a record lacks a signature although this instance has a fleet key.
	ErrUnsigned = errors.New("it is not signed: give all instances this version and the same fleet key")
)

type signed struct {
	State     json.RawMessage `json:"state"`
	Signature string          `json:"signature"`
}

// FleetKey has one or more parts, separated by commas. The first part signs; signatures of all parts are valid. So a
// key can be replaced while instances still use the previous one.
type FleetKey string

// A signature of one kind is not valid as another.
const (
	desiredState   = "desired state"
	instanceRecord = "instance record"
	peerConnection = "peer connection"
)

func (k FleetKey) sign(kind, text string) string {
	first, _, _ := strings.Cut(string(k), ",")
	return signature(first, kind, text)
}

func (k FleetKey) verify(kind, text, by string) bool {
	for key := range strings.SplitSeq(string(k), ",") {
		if hmac.Equal([]byte(signature(key, kind, text)), []byte(by)) {
			return true
		}
	}
	return false
}

// PeerSecrets returns secrets that prove possession of a fleet key to the instance id. Clients use the first; servers
// accept all.
func (k FleetKey) PeerSecrets(environment, id string) (secrets []string) {
	for key := range strings.SplitSeq(string(k), ",") {
		if key != "" {
			secrets = append(secrets, signature(key, peerConnection, environment+"\n"+id))
		}
	}
	return secrets
}

func signature(key, kind, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("tendril " + kind + " 1\n" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (k FleetKey) seal(d Desired) string {
	state, _ := json.Marshal(d)
	text, _ := json.Marshal(signed{state, k.sign(desiredState, string(state))})
	return string(text)
}

func (k FleetKey) open(text, environment string) (Desired, error) {
	var s signed
	if err := json.Unmarshal([]byte(text), &s); err != nil || !k.verify(desiredState, string(s.State), s.Signature) {
		return Desired{}, ErrForged
	}
	var d Desired
	if err := json.Unmarshal(s.State, &d); err != nil {
		return Desired{}, err
	}
	if d.Environment != environment {
		return Desired{}, fmt.Errorf("it belongs to environment %q", d.Environment)
	}
	return d, nil
}

// DesiredState is this instance's copy of the desired state. It is safe for concurrent use.
type DesiredState struct {
	environment string
	key         FleetKey
	keep        func(text string) error // nil keeps the state in memory only

	mu     sync.Mutex
	latest Desired
	text   string // signed form of latest
	err    error  // of the last Refresh
}

// NewDesired returns a desired state that starts with kept, the text last passed to keep, or "". keep, which may be
// nil, stores each new state before it takes effect, so that a restart cannot return to an older one. If kept is not
// genuine, NewDesired returns an error and the zero state.
func NewDesired(environment string, key FleetKey, kept string, keep func(text string) error) (*DesiredState, error) {
	d := &DesiredState{environment: environment, key: key, keep: keep, latest: Desired{Environment: environment}}
	if kept == "" {
		return d, nil
	}
	latest, err := key.open(kept, environment)
	if err != nil {
		return d, fmt.Errorf("opening the saved desired state: %w", err)
	}
	d.latest, d.text = latest, kept
	return d, nil
}

func (d *DesiredState) leaseName() string { return d.environment + "/desired" }

// Current returns the latest known state, and the error of the last Refresh.
func (d *DesiredState) Current() (Desired, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.latest, d.err
}

// Refresh reads the stored state. After an error, the latest accepted state stays in effect.
func (d *DesiredState) Refresh(ctx context.Context, store Store) (Desired, error) {
	_, err := d.readAndAccept(ctx, store)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
	return d.latest, err
}

func (d *DesiredState) readAndAccept(ctx context.Context, store Store) (queue.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stored, err := store.Read(ctx, d.leaseName())
	if err != nil {
		return stored, fmt.Errorf("reading the desired state: %w", err)
	}
	return stored, d.accept(stored)
}

func (d *DesiredState) accept(stored queue.Lease) error {
	next := Desired{Environment: d.environment}
	if stored.Version != "" {
		var err error
		if next, err = d.key.open(stored.Data, d.environment); err != nil {
			return fmt.Errorf("the registry's desired state is rejected: %w", err)
		}
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case next.Revision < d.latest.Revision:
		return fmt.Errorf("the registry's desired state has revision %d, this instance has applied %d: %w",
			next.Revision, d.latest.Revision, ErrReplayed)
	case next.Revision == d.latest.Revision && stored.Data == d.text:
		return nil
	case next.Revision == d.latest.Revision:
		return fmt.Errorf("the registry's desired state has revision %d: %w", next.Revision, ErrDiverged)
	}

	if d.keep != nil {
		if err := d.keep(stored.Data); err != nil {
			return fmt.Errorf("saving the desired state: %w", err)
		}
	}
	d.latest, d.text = next, stored.Data
	return nil
}

const (
	// followInterval is how often the leader reads the registry, and other instances the leader's lease.
	followInterval = 2 * time.Second
	// rereadAfter is how often other instances also read the registry.
	rereadAfter = 5 * time.Minute
	retryAfter  = 10 * time.Second
)

// Following configures [DesiredState.Follow]. All fields are required.
type Following struct {
	Store    Store
	Leads    func() bool
	Revision func() int64
	// Apply is called after each change of the state, Failed with the first of consecutive errors.
	Apply  func()
	Failed func(error)
}

// Follow keeps the state up to date until ctx ends.
func (d *DesiredState) Follow(ctx context.Context, f Following) {
	tick := time.Tick(followInterval)
	lastRead := time.Now()
	applied := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}

		known, lastErr := d.Current()
		if f.due(time.Since(lastRead), known.Revision, lastErr) {
			lastRead = time.Now()
			var err error
			known, err = d.Refresh(ctx, f.Store)
			if err != nil && lastErr == nil && ctx.Err() == nil {
				f.Failed(err)
			}
		}
		if known.Revision != applied { // another caller of Refresh may have read it
			applied = known.Revision
			f.Apply()
		}
	}
}

func (f *Following) due(age time.Duration, revision int64, lastErr error) bool {
	if lastErr != nil {
		return age >= retryAfter
	}
	return f.Leads() || f.Revision() > revision || age >= rereadAfter
}

// Change alters the stored state and returns the new one. It replaces a stored state that is older than the latest
// known one or diverges from it, and rejects a forged one. alter may be called several times, with the new revision
// set; if it returns an error, nothing changes.
func (d *DesiredState) Change(ctx context.Context, store Store, alter func(*Desired) error) (Desired, error) {
	for ctx.Err() == nil {
		stored, err := d.readAndAccept(ctx, store)
		if err != nil && !errors.Is(err, ErrReplayed) && !errors.Is(err, ErrDiverged) {
			return Desired{}, err
		}

		next, _ := d.Current()
		next.Pauses = maps.Clone(next.Pauses)
		next.Revision++
		if err := alter(&next); err != nil {
			return Desired{}, err
		}

		lease := queue.Lease{Owner: "desired state", Version: rand.Text(), Duration: FreshFor, Data: d.key.seal(next)}
		won, _, err := store.Swap(ctx, d.leaseName(), queue.Lease{Version: stored.Version}, lease)
		if err != nil {
			return Desired{}, fmt.Errorf("writing the desired state: %w", err)
		}
		if won {
			return next, d.accept(lease)
		}
	}
	return Desired{}, ctx.Err()
}
