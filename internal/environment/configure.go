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

func (c *changes) settingsFile(cfg *config.Config) (f settingsFile, err error) {
	path := c.settings.now().ConfigFile
	if cfg != nil {
		path = cfg.ConfigFile
	}
	f.file.Path = cmp.Or(path, "tendril.yaml")
	if f.info, _ = os.Stat(f.file.Path); f.info == nil {
		return f, nil
	}
	f.file.Data, err = os.ReadFile(f.file.Path)
	return f, err
}

func (c *changes) configuration() api.Configuration {
	cfg, invalid := c.load(c.sources(c.currentBundle()))
	own, unreadable := c.settingsFile(cfg)
	shown := api.Configuration{File: own.place(), Exists: own.info != nil, Blocks: config.Blocks(),
		Topics: config.Topics(), Shared: c.desired.sharedSettings()}
	if err := cmp.Or(unreadable, invalid); err != nil {
		shown.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
	} else if change, err := c.pendingChange(); err == nil {
		shown.Changes = pendingChanges(&change)
	}

	edited, explained := own, c.settings.explanations()
	if shown.Shared != nil {
		edited = c.desired.settingsFile()
	}
	shown.Hash = edited.hash()
	shown.Options = c.configOptions(&edited, explained)
	shown.Queues = c.configQueues(&edited, explained)
	return shown
}

func (c *changes) configOptions(f *settingsFile, explained []config.Explanation) (options []api.ConfigOption) {
	lockOfFile := f.uneditable()
	described := describedOptions(explained)
	for i := range explained {
		e := &explained[i]
		o := c.configOption(&e.Option, described[i])
		o.Locked = cmp.Or(lockOfFile, f.lock(&e.Option, e.From))
		if f.file.Shared {
			c.describeShared(&o, e)
		}
		if e.Option.Name == "queues" {
			o.Locked = cmp.Or(o.Locked, f.uneditable("queues"))
		}
		options = append(options, o)
	}
	return options
}

func (c *changes) configQueues(f *settingsFile, explained []config.Explanation) []api.ConfigQueue {
	all := []api.ConfigQueue{}
	for i := range explained {
		list := &explained[i] // the option queues; the others have none
		if len(list.Queues) == 0 {
			continue
		}
		lockOfList := cmp.Or(f.uneditable(), f.lock(&list.Option, list.From))
		for _, q := range list.Queues {
			all = append(all, c.configQueue(f, &q, cmp.Or(lockOfList, f.uneditable("max of "+q.Name))))
		}
	}
	return all
}

// uneditable returns why the file, or one of the options in it, cannot be edited, or "".
func (s *settingsFile) uneditable(options ...string) string {
	removal := map[string]*string{}
	for _, name := range options {
		removal[name] = nil
	}
	_, err := config.EditFile(s.file, removal)
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		return wrong.Problems[0].Text + ": " + wrong.Problems[0].Hint
	}
	return ""
}

func (s *settingsFile) lock(o *config.Option, from config.Origin) string {
	if s.file.Shared {
		return sharedLock(o)
	}
	return o.Lock(from)
}

func (c *changes) describeShared(o *api.ConfigOption, e *config.Explanation) {
	if e.Option.PerInstance() == "" {
		o.Overridden = e.From.Overrides(config.FromRegistry)
	}
	if e.Option.AppRestart && c.programs.app != nil {
		o.Effect = api.EffectApp
	}
}

func sharedLock(o *config.Option) string {
	why := o.PerInstance()
	if why != "" {
		why += ": set it in the settings file"
	}
	return why
}

func (c *changes) configQueue(f *settingsFile, q *config.QueueExplanation, lock string) api.ConfigQueue {
	shown := api.ConfigQueue{Name: q.Name}
	for i := range q.Settings {
		s := &q.Settings[i]
		row := s.Option()
		o := c.configOption(&row, api.DescribedOption{
			Name: strings.ReplaceAll(s.Key, "_", "-") + " of " + q.Name, OptionValue: optionValue(s.Key, s.Value, s.From)})
		o.Locked = lock
		if f.file.Shared {
			o.Locked = sharedLock(&row)
		}
		if s.Key == "url" {
			o.Locked = cmp.Or(o.Locked, "it names the queue: edit the file by hand")
		}
		shown.Settings = append(shown.Settings, o)
	}
	return shown
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
	shared bool
	old    settingsFile
	new    config.File
}

func (c *changes) previewChange(change api.SettingsChange) (api.SettingsPreview, error) {
	plan, err := c.plan(change)
	return plan.SettingsPreview, err
}

func (c *changes) plan(change api.SettingsChange) (plan settingsPlan, err error) {
	plan.shared = !change.This && c.desired.state != nil
	if err := c.readOldSettings(&plan); err != nil {
		return plan, refusedChange(change.Set, err)
	}
	if err := c.refuseLocked(change.Set, plan.shared); err != nil {
		return plan, err
	}

	edited, err := config.EditFile(plan.old.file, change.Set)
	if err != nil {
		return plan, refusedChange(change.Set, err)
	}
	plan.new = edited.File
	cfg, err := c.loadPlanned(&plan)
	if err != nil {
		return plan, refusedChange(change.Set, err)
	}
	if plan.shared {
		if err := refuse(missingQueues(change.Set, cfg)); err != nil {
			return plan, err
		}
	}

	plan.SettingsPreview = api.SettingsPreview{
		File: plan.old.place(), Base: plan.old.hash(), Hash: hashOf(edited.File.Data), Scope: scopeOf(change.Set),
		Lines: fileLines(edited.Lines), Changes: c.plannedChanges(cfg, plan.shared),
		Warnings: append(c.newWarnings(cfg), c.desired.warnings(change, cfg)...)}
	return plan, nil
}

func (c *changes) readOldSettings(plan *settingsPlan) (err error) {
	if plan.shared {
		plan.old = c.desired.settingsFile()
		return nil
	}
	cfg, _ := c.load(c.sources(c.currentBundle())) // the change may correct invalid settings
	plan.old, err = c.settingsFile(cfg)
	return err
}

func (c *changes) loadPlanned(plan *settingsPlan) (*config.Config, error) {
	src := c.sources(c.currentBundle())
	if plan.shared {
		src.Registry = &plan.new
	} else {
		src.File = &plan.new
	}
	cfg, err := c.load(src)
	if err == nil && cfg == nil {
		err = errors.New("this process cannot re-read its settings")
	}
	return cfg, err
}

func (c *changes) plannedChanges(cfg *config.Config, shared bool) []api.OptionChange {
	after := c.changeTo(cfg)
	var restarting []string
	if shared && c.programs.app != nil {
		restarting = after.RestartApp() // these no longer wait for the next start
	}
	changes := pendingChanges(&after)
	for i := range changes {
		changes[i].RestartsApp = slices.Contains(restarting, changes[i].Name)
	}

	current, err := c.load(c.sources(c.currentBundle()))
	if err != nil {
		return changes
	}
	before := c.changeTo(current)
	pending := pendingChanges(&before)
	return slices.DeleteFunc(changes, func(o api.OptionChange) bool {
		isSame := func(p api.OptionChange) bool { return p.Name == o.Name && p.Value == o.Value }
		return slices.ContainsFunc(pending, isSame)
	})
}

func scopeOf(set map[string]*string) string {
	code, access := false, false
	for name := range set {
		option, _, _ := strings.Cut(name, " of ")
		if o, found := config.Lookup(option); found { // weight and max, which exist only per queue, are not sensitive
			code = code || o.Guard() == config.GuardCode
			access = access || o.Guard() == config.GuardAccess
		}
	}
	return console.SettingsScope(code, access)
}

func missingQueues(set map[string]*string, cfg *config.Config) (missing []api.Detail) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		_, queue, ofQueue := strings.Cut(name, " of ")
		isNamed := func(q config.QueueSettings) bool { return q.Name == queue }
		if ofQueue && set[name] != nil && !slices.ContainsFunc(cfg.Queues, isNamed) {
			missing = append(missing, api.Detail{Option: name, Text: "this instance has no queue " + strconv.Quote(queue),
				Hint: "'tendril config show' lists its queues"})
		}
	}
	return missing
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
	var details []api.Detail
	explained := c.settings.explanations()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if text := c.lockText(explained, name, shared); text != "" {
			details = append(details, api.Detail{Option: name, Text: text})
		}
	}

	return refuse(details)
}

func refuse(details []api.Detail) error {
	if len(details) == 0 {
		return nil
	}
	return &api.Error{Status: http.StatusBadRequest, Message: "the settings were not changed", Details: details}
}

func (c *changes) lockText(explained []config.Explanation, name string, shared bool) string {
	option, _, ofQueue := strings.Cut(name, " of ")
	if ofQueue && !shared {
		option = "queues" // contains a queue's settings in the settings file
	}
	o, found := config.Lookup(option)
	i := slices.IndexFunc(explained, func(e config.Explanation) bool { return e.Option.Name == o.Name })
	if !found || i < 0 {
		return ""
	}

	var why string
	switch {
	case shared && ofQueue && !o.PerQueue: // rejected by EditFile
	case shared:
		why = sharedLock(&o)
	case ofQueue && c.setForAll(name):
		o.Name = strconv.Quote(name)
		why = o.Lock(config.Origin{Layer: config.FromRegistry})
	default:
		why = o.Lock(explained[i].From)
	}
	if why == "" {
		return ""
	}
	if shared && ofQueue {
		o.Name = strconv.Quote(name)
	}
	return o.Name + " is locked: " + why
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
	refusal := api.BadRequest("the settings were not changed", "")
	wrong, ok := errors.AsType[*config.Error](err)
	if !ok {
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
	end, err := c.awaitTurn(ctx)
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
		plan.Revision, err = c.desired.setSettings(ctx, &plan, change)
		return plan.SettingsPreview, err
	}

	b := c.currentBundle()
	now, err := c.replaceSettings(&plan, b)
	if err != nil {
		return none, err
	}
	c.apply(now, b)

	var names []string
	for _, l := range plan.Changes {
		names = append(names, l.Name)
	}
	c.opts.log("config").Info("settings file changed", "file", plan.File, "options", strings.Join(names, ", "))
	return plan.SettingsPreview, nil
}

func errChangedMeanwhile(file string) error {
	return api.NewError(http.StatusConflict, "the settings were changed in the meantime: "+file,
		"review the difference again, and repeat the change")
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
		return change, api.NewError(http.StatusConflict, "cannot write the settings file: "+
			err.Error(), "give the user who runs tendril write access to "+filepath.Dir(plan.File))
	}

	cfg, err := c.load(c.sources(b))
	if err == nil && cfg.ConfigFile != plan.old.file.Path {
		err = fmt.Errorf("another settings file is in force: %s", cfg.ConfigFile)
	}
	if err != nil {
		return change, restoreSettings(path, mode, &plan.old, err)
	}
	c.logNewlyUnused(cfg, b)
	return c.changeTo(cfg), nil
}

func restoreSettings(path string, mode fs.FileMode, old *settingsFile, cause error) error {
	var err error
	if old.info == nil {
		err = os.Remove(path)
	} else {
		err = writeSettings(path, old.file.Data, mode, old.info)
	}
	if err != nil {
		return fmt.Errorf("%w; restoring the previous settings file: %w", cause, err)
	}
	return refusedChange(nil, cause)
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
