package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tendril/api"
)

var configurationScreens = []screen{
	{path: "/configuration", entry: "Configuration", view: "configuration", load: func(v *visit) (any, error) { return readConfiguration(v) }},
	{path: "/configuration/preview", entry: "Configuration", view: "configuration", load: loadPreview,
		form: true},
}

var configurationActs = []act{{"/configuration/save", saveConfiguration}}

type configurationPage struct {
	api.Configuration
	Off, ReadOnly string // reasons, or ""

	Match    string
	Changed  bool
	Tabs     []choice
	Sections []settingsSection
	// Version is a hash of the form's contents, used to detect later changes of the settings.
	Version  string
	Note     string
	Problems []api.Detail // problems without a displayed field
	// Preview is the effect of the change in Fields and Unset; nil when the form is shown.
	Preview *api.SettingsPreview
	Fields  map[string]string
	Unset   []string
}

type settingsSection struct {
	Title   string
	Block   bool // always open
	Open    bool
	Rows    []settingRow
	Changed int
	Locked  string
}

type settingRow struct {
	api.ConfigOption
	Text      string
	FieldFor  string
	Units     string
	InForce   string // current value, if the file's value applies only after a restart
	Removable bool
	Problems  []api.Detail
}

const (
	layerDefault  = "default"
	layerBundle   = "bundle"
	layerFile     = "file"
	layerRegistry = "registry"
)

// blockOrder is the order of Elastic Beanstalk's page; other options come first.
var blockOrder = []string{"queue-url", "http-path", "mime-type", "http-connections", "visibility-timeout",
	"error-visibility-timeout", "max-retries", "connect-timeout", "inactivity-timeout", "retention-period"}

const (
	setField   = "set."
	unsetField = "unset"
)

func readConfiguration(v *visit) (*configurationPage, error) {
	page := &configurationPage{Match: v.query("match"), Changed: v.query("changed") == "1"}
	page.Tabs = []choice{{Label: "All", Path: v.pathWith("changed", ""), Chosen: !page.Changed},
		{Label: "Changed", Path: v.pathWith("changed", "1"), Chosen: page.Changed}}

	var err error
	page.Configuration, err = v.api.Configuration(v.ctx)
	if isConflict(err) { // the environment only serves queues
		page.Off = refusalOf(err).Message
		return page, nil
	}
	if err != nil {
		return nil, err
	}

	switch {
	case v.Caller.ReadOnly:
		page.ReadOnly = "The console is read-only."
	case !v.Caller.May(api.ScopeAct):
		page.ReadOnly = "You have read access only: a change needs the scope act."
	}
	page.arrange(v.Caller.Scopes)
	return page, nil
}

func (p *configurationPage) Failed() bool {
	return len(p.Problems) > 0 || slices.ContainsFunc(p.rows(), func(r *settingRow) bool { return len(r.Problems) > 0 })
}

func (p *configurationPage) Now(name string) string {
	if o := p.Option(name); o != nil {
		return o.Value
	}
	return ""
}

func (r *settingRow) Short() bool { return r.Type != "text" && r.Type != "list" }

func (p *configurationPage) Query() string {
	query := url.Values{}
	if p.Match != "" {
		query.Set("match", p.Match)
	}
	if p.Changed {
		query.Set("changed", "1")
	}
	return withQuery("", query)
}

func (p *configurationPage) arrange(scopes []string) {
	sections := arranger{page: p, scopes: scopes, version: sha256.New()}
	sections.version.Write([]byte(p.Hash))

	ordered := slices.SortedStableFunc(slices.Values(p.Options), func(a, b api.ConfigOption) int {
		return cmp.Compare(slices.Index(blockOrder, a.Name), slices.Index(blockOrder, b.Name))
	})
	for _, block := range p.Blocks {
		sections.add(settingsSection{Title: block, Block: true}, ordered,
			func(o *api.ConfigOption) bool { return o.Block == block })
	}
	for _, topic := range p.Topics {
		sections.add(settingsSection{Title: topic}, p.Options,
			func(o *api.ConfigOption) bool { return o.Block == "" && o.Topic == topic })
	}
	if len(p.Queues) > 1 {
		for _, q := range p.Queues {
			sections.add(settingsSection{Title: "Queue " + q.Name}, q.Settings,
				func(*api.ConfigOption) bool { return true })
		}
	}

	p.Version = hex.EncodeToString(sections.version.Sum(nil)[:8])
}

type arranger struct {
	page    *configurationPage
	scopes  []string
	version hash.Hash // of all settings, shown or not
}

func (a *arranger) add(s settingsSection, options []api.ConfigOption, includes func(*api.ConfigOption) bool) {
	p := a.page
	for i := range options {
		if !includes(&options[i]) {
			continue
		}
		row := p.newRow(options[i], a.scopes)
		a.version.Write([]byte(row.Name + "\x00" + row.Text + "\x00"))

		isChanged := row.Layer != layerDefault
		if isChanged {
			s.Changed++
		}
		if (isChanged || !p.Changed) && row.matches(p.Match) {
			s.Rows = append(s.Rows, row)
		}
	}

	if len(s.Rows) > 0 {
		s.Open = s.Block || p.Match != "" || p.Changed
		s.hoistLockReason()
		p.Sections = append(p.Sections, s)
	}
}

func (p *configurationPage) newRow(o api.ConfigOption, scopes []string) settingRow {
	row := settingRow{ConfigOption: o, FieldFor: setField + o.Name, Units: o.Unit}
	p.setStoredValue(&row)
	if row.Hidden || strings.Contains(row.Text, "(hidden)") {
		row.Hidden, row.Text = true, ""
	}

	if o.Type == "duration" { // a number without a unit is in seconds
		if digits, found := strings.CutSuffix(row.Text, "s"); found && strings.Trim(digits, "0123456789") == "" {
			row.Text = digits
		} else {
			row.Units = ""
		}
	}

	if o.Type == "switch" {
		row.Choices = []string{"true", "false"}
	}
	if len(row.Choices) > 0 && !slices.Contains(row.Choices, row.Text) {
		row.Choices = append([]string{row.Text}, row.Choices...)
	}

	if p.ReadOnly == "" {
		row.Locked = cmp.Or(row.Locked, whyLocked(o.Scope, scopes))
	}
	return row
}

// setStoredValue sets the value in the file or registry, which may differ from the value in force.
func (p *configurationPage) setStoredValue(row *settingRow) {
	editedLayer := layerFile
	if p.Shared != nil {
		editedLayer = layerRegistry
	}

	row.Text = row.Value
	row.Removable = row.Layer == editedLayer
	for _, change := range p.Changes {
		if change.Name == row.Name {
			row.Text = change.Value
			row.InForce = cmp.Or(row.Value, "none")
			row.Removable = change.Layer == editedLayer
		}
	}

	if row.Overridden == "" {
		return
	}
	for _, set := range row.SetBy {
		if slices.Contains([]string{layerDefault, layerBundle, layerFile, layerRegistry}, set.Layer) {
			row.Text = set.Value
			row.Removable = set.Layer == editedLayer
		}
	}
}

func whyLocked(scope string, scopes []string) string {
	switch {
	case slices.Contains(scopes, scope):
		return ""
	case scope == api.ScopeDeploy:
		return "it affects the code that runs: a change needs the scope deploy"
	}
	return "it decides who may call: change it with 'tendril config set'"
}

func (r *settingRow) matches(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{r.Label, r.Name, r.Key, r.Help, r.Detail, r.Topic, r.Text, r.Where},
		func(of string) bool { return strings.Contains(strings.ToLower(of), text) })
}

func (s *settingsSection) hoistLockReason() {
	if len(s.Rows) < 2 {
		return
	}
	why := s.Rows[0].Locked
	if !slices.ContainsFunc(s.Rows, func(r settingRow) bool { return r.Locked != why }) {
		s.Locked = why
	}
}

func (p *configurationPage) readForm(form url.Values) {
	p.Fields = map[string]string{}
	for _, row := range p.rows() {
		if row.Locked != "" {
			continue
		}
		if slices.Contains(form[unsetField], row.Name) {
			p.Unset = append(p.Unset, row.Name)
			continue
		}
		texts, sent := form[row.FieldFor]
		if !sent {
			continue
		}

		text := strings.TrimSpace(texts[0])
		switch {
		case text == row.Text:
		case text != "":
			p.Fields[row.Name] = text
		case row.Removable && !row.Hidden:
			p.Unset = append(p.Unset, row.Name)
		}
		row.Text = text
	}
}

func (p *configurationPage) change() api.SettingsChange {
	set := map[string]*string{}
	for name, text := range p.Fields {
		set[name] = &text
	}
	for _, name := range p.Unset {
		set[name] = nil
	}
	return api.SettingsChange{Set: set}
}

func (p *configurationPage) rows() (all []*settingRow) {
	for i := range p.Sections {
		for j := range p.Sections[i].Rows {
			all = append(all, &p.Sections[i].Rows[j])
		}
	}
	return all
}

func (p *configurationPage) showRefusal(refused *api.Error) {
	var names []string
	for _, d := range refused.Details {
		names = append(names, d.Option)
		p.addProblem(d)
	}

	why := refused.Message
	if names != nil {
		why = "correct " + joinNames(slices.Compact(names))
	}
	p.Note = "Nothing was changed yet: " + why + "."
}

func (p *configurationPage) addProblem(d api.Detail) {
	for i := range p.Sections {
		s := &p.Sections[i]
		at := slices.IndexFunc(s.Rows, func(r settingRow) bool { return r.Name == d.Option })
		if at >= 0 {
			s.Rows[at].Problems = append(s.Rows[at].Problems, d)
			s.Open = true
			return
		}
	}
	p.Problems = append(p.Problems, d)
}

func loadPreview(v *visit) (any, error) {
	page, err := readConfiguration(v)
	if err != nil || page.Off != "" {
		return page, err
	}
	if v.field("version") != page.Version {
		page.Note = "The settings were changed in the meantime. These are the current ones: make your change again."
		return page, nil
	}

	page.readForm(v.r.PostForm)
	change := page.change()
	if len(change.Set) == 0 {
		page.Note = "These settings are already in force."
		return page, nil
	}

	preview, err := v.api.PreviewChange(v.ctx, change)
	refused, isRefused := errors.AsType[*api.Error](err)
	switch {
	case isRefused && refused.Status == http.StatusBadRequest:
		page.showRefusal(refused)
	case err != nil:
		return nil, err
	case len(preview.Lines) == 0:
		page.Note = "Nothing to change: these values are already set."
	default:
		page.Preview = &preview
	}
	return page, nil
}

func saveConfiguration(v *visit) (string, error) {
	change := api.SettingsChange{Base: v.field("base"), Set: map[string]*string{}}
	for name, texts := range v.r.PostForm {
		if option, found := strings.CutPrefix(name, setField); found {
			change.Set[option] = &texts[0]
		}
	}
	for _, option := range v.r.PostForm[unsetField] {
		change.Set[option] = nil
	}

	done, err := v.api.ChangeSettings(v.ctx, change)
	if refused, ok := errors.AsType[*api.Error](err); ok && len(refused.Details) > 0 {
		d := refused.Details[0]
		return "", api.NewError(refused.Status, refused.Message+": "+d.Text, d.Hint)
	}
	if err != nil {
		return "", err
	}
	return savedText(&done), nil
}

func savedText(done *api.SettingsPreview) string {
	now, later := done.Changed()
	text := done.File + " was written."
	if done.Revision > 0 {
		text = fmt.Sprintf("Set for all instances in revision %d. Instances shows which have applied it.", done.Revision)
		now = nil
	}
	if len(now) > 0 {
		text += " In force now: " + joinNames(now) + "."
	}
	if len(later) > 0 {
		text += " At the next start: " + joinNames(later) + "."
	}
	return text
}

func joinNames(names []string) string {
	const most = 10
	if len(names) > most {
		names = append(names[:most:most], "and more")
	}
	return strings.Join(names, ", ")
}
