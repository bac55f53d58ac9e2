package environment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/host/datadir"
)

type settingsFile struct {
	file config.File
	info fs.FileInfo // nil before the file exists, and for the settings for all instances
}

func (s *settingsFile) hash() string { return hashOf(s.file.Data) }

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// place returns an absolute path, since the reader may be in another folder.
func (s *settingsFile) place() string {
	if abs, err := filepath.Abs(s.file.Path); err == nil && !s.file.Shared {
		return abs
	}
	return s.file.Path
}

// settingsFile returns the settings file in force or, without one, the first path that tendril searches. now is nil if
// the file is invalid.
func (c *changes) settingsFile() (f settingsFile, now *config.Config, err error) {
	now, _, err = c.compare(c.sources(c.currentBundle()))
	f.file.Path = c.settings.now().ConfigFile
	if now != nil {
		f.file.Path = now.ConfigFile
	}
	f.file.Path = cmp.Or(f.file.Path, "tendril.yaml")
	if f.info, _ = os.Stat(f.file.Path); f.info == nil {
		return f, now, err
	}
	data, unreadable := os.ReadFile(f.file.Path)
	if unreadable != nil {
		return f, nil, unreadable
	}
	f.file.Data = data
	return f, now, err
}

func (c *changes) configuration() api.Configuration {
	f, _, err := c.settingsFile()
	shown := api.Configuration{File: f.place(), Exists: f.info != nil, Hash: f.hash(), Blocks: config.Blocks(),
		Topics: config.Topics(), Queues: []api.ConfigQueue{}, Shared: c.desired.shared()}
	lock := (*config.Option).Lock
	if shown.Shared != nil {
		f = c.desired.settingsFile()
		shown.Hash, lock = f.hash(), sharedLock
	}
	if err != nil {
		shown.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
	} else if change, err := c.pending(); err == nil {
		shown.Changes = pendingChanges(&change)
	}

	locked := lockOfFile(&f, "http-path")
	explained := c.settings.explanations()
	described := describedOptions(explained)
	for i := range explained {
		e := &explained[i]
		o := c.configOption(&e.Option, described[i])
		o.Locked = cmp.Or(locked, lock(&e.Option, e.From))
		if shown.Shared != nil {
			o.Overridden = e.From.Overrides(config.FromRegistry)
			if e.Option.AppRestart && c.programs.app != nil {
				o.Effect = api.EffectApp
			}
		}
		if e.Option.Name == "queues" {
			o.Locked = cmp.Or(o.Locked, lockOfFile(&f, "queues"))
			for _, q := range e.Queues {
				shown.Queues = append(shown.Queues, c.configQueue(&f, &q, cmp.Or(locked, lock(&e.Option, e.From))))
			}
		}
		shown.Options = append(shown.Options, o)
	}
	return shown
}

func sharedLock(o *config.Option, _ config.Origin) string {
	why := o.PerInstance()
	if why != "" {
		why += ": set it in the settings file"
	}
	return why
}

// configQueue locks the settings of a queue for which the settings file has no map. Settings for all instances need no
// map.
func (c *changes) configQueue(f *settingsFile, q *config.QueueExplanation, locked string) api.ConfigQueue {
	lock := func(*config.Option) string { return cmp.Or(locked, lockOfFile(f, "max of "+q.Name)) }
	if f.file.Shared {
		lock = func(o *config.Option) string { return sharedLock(o, config.Origin{}) }
	}
	shown := api.ConfigQueue{Name: q.Name}
	for i := range q.Settings {
		s := &q.Settings[i]
		row := s.Option()
		o := c.configOption(&row, api.DescribedOption{
			Name: strings.ReplaceAll(s.Key, "_", "-") + " of " + q.Name, OptionValue: optionValue(s.Key, s.Value, s.From)})
		o.Locked = lock(&row)
		if s.Key == "url" {
			o.Locked = cmp.Or(o.Locked, "it names the queue: edit the file by hand")
		}
		shown.Settings = append(shown.Settings, o)
	}
	return shown
}

func lockOfFile(f *settingsFile, name string) string {
	_, err := config.EditFile(f.file, map[string]*string{name: nil})
	if wrong := (*config.Error)(nil); errors.As(err, &wrong) {
		return wrong.Problems[0].Text + ": " + wrong.Problems[0].Hint
	}
	return ""
}

func (c *changes) configOption(o *config.Option, described api.DescribedOption) api.ConfigOption {
	shown := api.ConfigOption{DescribedOption: described, Block: o.Block(), Topic: o.Group,
		Label: o.Label(), Key: o.Key,
		Help: o.Help, Detail: o.Detail, Type: o.Kind(), Unit: o.Unit(), Default: o.DefaultText(), Allowed: o.AllowedText(),
		Choices: o.Choices(), Hidden: strings.Contains(described.Value, "(hidden)"), Effect: api.EffectRestart,
		Scope: console.SettingsScope(o.Guard() == config.GuardCode, o.Guard() == config.GuardAccess)}
	if o.Live && (o.Name != connections || !c.sharesConnections()) {
		shown.Effect = api.EffectReload
	}
	return shown
}

type settingsPlan struct {
	api.SettingsPreview
	shared   bool
	restarts bool
	ofQueue  bool
	old      settingsFile
	new      config.File
}

func (c *changes) previewChange(change api.SettingsChange) (api.SettingsPreview, error) {
	plan, err := c.plan(change)
	return plan.SettingsPreview, err
}

func (c *changes) plan(change api.SettingsChange) (plan settingsPlan, err error) {
	shared := !change.This && c.desired.state != nil
	old := c.desired.settingsFile()
	if !shared {
		var now *config.Config
		old, now, err = c.settingsFile()
		if err != nil && now == nil && old.info != nil && old.file.Data == nil {
			return plan, refusedChange(change.Set, err)
		}
	}
	if err := c.refuseLocked(change.Set, shared); err != nil {
		return plan, err
	}

	edited, err := config.EditFile(old.file, change.Set)
	if err != nil {
		return plan, refusedChange(change.Set, err)
	}
	src := c.sources(c.currentBundle())
	if shared {
		src.Registry = &edited.File
	} else {
		src.File = &edited.File
	}
	loaded, after, err := c.compare(src)
	if err == nil && loaded == nil {
		err = errors.New("this process cannot re-read its settings")
	}
	if err != nil {
		return plan, refusedChange(change.Set, err)
	}

	ofQueue, missing := otherQueues(change.Set, loaded)
	if shared && len(missing) > 0 {
		return plan, &api.Error{Status: http.StatusBadRequest, Message: "the settings were not changed", Details: missing}
	}
	var restarting []string
	if shared && c.programs.app != nil {
		restarting = after.RestartApp()
	}
	plan = settingsPlan{shared: shared, restarts: restartsApp(change.Set), ofQueue: ofQueue, old: old, new: edited.File, SettingsPreview: api.SettingsPreview{
		File: old.place(), Base: old.hash(), Hash: hashOf(edited.File.Data), Scope: scopeOf(change.Set),
		Lines:   fileLines(edited.Lines),
		Changes: pendingChanges(&after), Warnings: c.newWarnings(loaded)}}
	for i := range plan.Changes {
		plan.Changes[i].RestartsApp = slices.Contains(restarting, plan.Changes[i].Name)
	}
	plan.Warnings = append(plan.Warnings, c.desired.warnings(change, loaded)...)
	if _, before, err := c.compare(c.sources(c.currentBundle())); err == nil { // omit changes that were already pending
		waits := pendingChanges(&before)
		plan.Changes = slices.DeleteFunc(plan.Changes, func(o api.OptionChange) bool {
			same := func(w api.OptionChange) bool { return w.Name == o.Name && w.Value == o.Value }
			return slices.ContainsFunc(waits, same)
		})
	}
	return plan, nil
}

func scopeOf(set map[string]*string) string {
	code, access := false, false
	for name := range set {
		option, _, _ := strings.Cut(name, " of ")
		o, _ := config.Lookup(option) // weight and max, which exist only per queue, are not sensitive
		if o.Name != "" {
			code, access = code || o.Guard() == config.GuardCode, access || o.Guard() == config.GuardAccess
		}
	}
	return console.SettingsScope(code, access)
}

func otherQueues(set map[string]*string, loaded *config.Config) (ofQueue bool, missing []api.Detail) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		_, queue, ofOne := strings.Cut(name, " of ")
		ofQueue = ofQueue || ofOne
		has := func(q config.QueueSettings) bool { return q.Name == queue }
		if ofOne && set[name] != nil && !slices.ContainsFunc(loaded.Queues, has) {
			missing = append(missing, api.Detail{Option: name, Text: "this instance has no queue " + strconv.Quote(queue),
				Hint: "'tendril config show' lists its queues"})
		}
	}
	return ofQueue, missing
}

func restartsApp(set map[string]*string) bool {
	for name := range set {
		if o, _ := config.Lookup(name); o.AppRestart {
			return true
		}
	}
	return false
}

func fileLines(lines []config.EditedLine) []api.FileLine {
	all := make([]api.FileLine, len(lines))
	for i, l := range lines {
		all[i] = api.FileLine{Line: l.Line, Added: l.Added, Text: l.Text}
	}
	return all
}

func (c *changes) newWarnings(loaded *config.Config) (all []api.Detail) {
	known := func(text string) bool {
		return slices.ContainsFunc(c.opts.Config.Warnings, func(p config.Problem) bool { return p.Text == text })
	}
	for _, w := range loaded.Warnings {
		if !known(w.Text) {
			all = append(all, api.Detail{Option: w.Option, Text: w.String(), Hint: w.Hint})
		}
	}
	return all
}

func (c *changes) refuseLocked(set map[string]*string, shared bool) error {
	lock := (*config.Option).Lock
	if shared {
		lock = sharedLock
	}
	var details []api.Detail
	explained := c.settings.explanations()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		option, _, ofOne := strings.Cut(name, " of ")
		o, found := config.Lookup(option)
		if ofOne && !shared {
			o, found = config.Lookup("queues")
		}
		i := slices.IndexFunc(explained, func(e config.Explanation) bool { return found && e.Option.Name == o.Name })
		if i < 0 || ofOne && shared && !o.PerQueue {
			continue
		}
		why, locked := lock(&o, explained[i].From), o.Name
		if ofOne && shared {
			locked = strconv.Quote(name)
		} else if ofOne && c.setForAll(name) {
			locked = strconv.Quote(name)
			o.Name = locked
			why = o.Lock(config.Origin{Layer: config.FromRegistry})
		}
		if why != "" {
			details = append(details, api.Detail{Option: name, Text: locked + " is locked: " + why})
		}
	}

	if len(details) == 0 {
		return nil
	}
	return &api.Error{Status: http.StatusBadRequest, Message: "the settings were not changed", Details: details}
}

func (c *changes) setForAll(name string) bool {
	f := c.registry.Load()
	if f == nil {
		return false
	}
	edited, err := config.EditFile(*f, map[string]*string{name: nil})
	return err == nil && len(edited.Lines) > 0
}

func refusedChange(set map[string]*string, err error) error {
	refusal := &api.Error{Status: http.StatusBadRequest, Message: "the settings were not changed"}
	var wrong *config.Error
	if !errors.As(err, &wrong) {
		refusal.Message += ": " + err.Error()
		return refusal
	}

	for _, p := range wrong.Problems {
		d := api.Detail{Option: p.Option, Text: p.String(), Hint: p.Hint}
		for _, name := range slices.Sorted(maps.Keys(set)) {
			option, _, _ := strings.Cut(name, " of ")
			if o, found := config.Lookup(option); found && o.Name == p.Option {
				d.Option = name
			}
		}
		refusal.Details = append(refusal.Details, d)
	}

	return refusal
}

func (c *changes) changeSettings(ctx context.Context, change api.SettingsChange) (api.SettingsPreview, error) {
	var none api.SettingsPreview
	end, err := c.begin(ctx)
	if err != nil {
		return none, err
	}
	defer end()

	plan, err := c.plan(change)
	if err != nil {
		return none, err
	}
	if change.Base != plan.Base {
		return none, errChangedMeanwhile(plan.File)
	}
	if plan.shared {
		plan.Revision, err = c.desired.set(ctx, &plan, change.Base)
		return plan.SettingsPreview, err
	}

	b := c.currentBundle()
	now, err := c.replaceSettings(&plan, b)
	if err != nil {
		return none, err
	}
	c.adopt(now, b)

	var names []string
	for _, l := range plan.Changes {
		names = append(names, l.Name)
	}
	c.opts.Logger.Info("settings file changed", "component", "config", "file", plan.File, "options", strings.Join(names, ", "))
	return plan.SettingsPreview, nil
}

func errChangedMeanwhile(file string) error {
	return &api.Error{Status: http.StatusConflict, Message: "the settings were changed in the meantime: " + file,
		Hint: "review the difference again, and repeat the change"}
}

func (c *changes) replaceSettings(plan *settingsPlan, b *bundle.Bundle) (change config.Change, err error) {
	path, mode := plan.old.file.Path, fs.FileMode(0o600)
	if plan.old.info != nil {
		mode = plan.old.info.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return change, err
		}
	}
	if err := writeSettings(path, plan.new.Data, mode, plan.old.info); err != nil {
		return change, &api.Error{Status: http.StatusConflict, Message: "cannot write the settings file: " +
			err.Error(), Hint: "give the user who runs tendril write access to " + filepath.Dir(plan.File)}
	}

	cfg, change, err := c.compare(c.sources(b))
	if err == nil && cfg.ConfigFile != plan.old.file.Path {
		err = fmt.Errorf("another settings file is in force: %s", cfg.ConfigFile)
	}
	if err == nil {
		c.logNotApplied(cfg, b)
		return change, nil
	}

	restored := os.Remove
	if plan.old.info != nil {
		restored = func(path string) error { return writeSettings(path, plan.old.file.Data, mode, plan.old.info) }
	}
	if failed := restored(path); failed != nil {
		return change, fmt.Errorf("%w; restoring the previous settings file: %w", err, failed)
	}
	return change, refusedChange(nil, err)
}

func writeSettings(path string, data []byte, mode fs.FileMode, old fs.FileInfo) error {
	if err := datadir.Replace(path, data, mode); err != nil || old == nil {
		return err
	}
	if was, ok := old.Sys().(*syscall.Stat_t); ok && int(was.Uid) != os.Geteuid() {
		return os.Lchown(path, int(was.Uid), int(was.Gid))
	}
	return nil
}
