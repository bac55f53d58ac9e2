package web

import (
	"cmp"
	"embed"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/observe/health"
)

//go:embed templates
var templates embed.FS

// Templates are parsed on first use, because most environments run for weeks without a visitor.
var views sync.Map

func view(name string) *template.Template {
	if parsed, ok := views.Load(name); ok {
		return parsed.(*template.Template)
	}
	parsed := template.Must(template.New("").Funcs(functions).ParseFS(templates, "templates/frame.html",
		"templates/parts.html", "templates/"+name+".html"))
	first, _ := views.LoadOrStore(name, parsed)
	return first.(*template.Template)
}

type frame struct {
	Title   string
	Path    string // with the query; forms return to it
	Live    string
	Entry   string
	Entries []entry
	Counts  map[string]count
	Status  *api.Status
	Health  health.Status
	Result  *result
	Now     time.Time
	Paused  int
	Caller  *api.Caller
	Fleet   *fleetView
	Stream  bool // an update of a live page; omits parts that the browser keeps
	Form    url.Values
	Action  string
	Data    any
}

// SignedIn reports whether a login link opened the session. Only such a session can be ended.
func (f *frame) SignedIn() bool { return strings.HasPrefix(f.Caller.Who, "session ") }

// Receiving reports whether at least one queue is not paused.
func (f *frame) Receiving() bool { return f.Paused < len(f.Status.Workers) }

// AllLines returns the URL of the Logs screen for the page's instance and process.
func (f *frame) AllLines() string {
	query := url.Values{}
	if f.Fleet != nil && f.Fleet.Chosen != nil {
		query.Set("instance", f.Fleet.Chosen.ID)
	}
	if page, ok := f.Data.(*appPage); ok && page.Process != "" {
		query.Set("process", page.Process)
	}
	return strings.TrimSuffix("/logs?"+query.Encode(), "?")
}

type count struct {
	N         int64
	Attention bool
}

func (v *visit) frame() *frame {
	f := &frame{Title: "Problem", Path: v.path(), Entries: entries, Counts: v.counts(), Status: &v.status, Result: v.result,
		Now: v.now, Caller: &v.caller, Fleet: v.fleet, Stream: v.streamed, Form: v.r.PostForm,
		Action: v.r.URL.RequestURI(), Data: v.Data}
	if v.screen != nil {
		if !v.screen.form && !v.screen.still {
			f.Live = "/live?" + url.Values{"at": {v.path()}}.Encode()
		}
		f.Entry = cmp.Or(v.entry, v.screen.entry)
		f.Title = cmp.Or(v.title, v.screen.entry)
	}

	if v.status.Health != nil {
		f.Health = v.status.Health.Status
		if all := v.status.Health.Environment; all.IsShared() {
			f.Health = all.Status
		}
	}
	if v.fleet != nil && v.fleet.Chosen != nil {
		f.Entries = keepInstance(v.fleet.Chosen.ID)
	}
	for _, w := range v.status.Workers {
		if w.Paused {
			f.Paused++
		}
	}
	return f
}

func (v *visit) counts() map[string]count {
	dead := api.DeadLetterQueues(v.status.Queues)
	letters, queues := int64(0), int64(0)
	for _, q := range v.status.Queues {
		if dead[q.Name] {
			letters += q.Ledger.Live
		} else {
			queues++
		}
	}

	counts := map[string]count{"Queues": {N: queues}, "Dead letters": {letters, letters > 0}}
	for _, p := range v.status.App {
		app := counts["App"]
		counts["App"] = count{app.N + 1, app.Attention || !p.Ready}
	}
	if v.status.Tasks != nil {
		counts["Periodic tasks"] = count{N: int64(len(v.status.Tasks.Tasks))}
	}
	return counts
}

func keepInstance(id string) []entry {
	kept := slices.Clone(entries)
	for i := range kept {
		isFleet := func(sc screen) bool { return sc.fleet && sc.entry == kept[i].Label }
		if slices.ContainsFunc(screens, isFleet) {
			kept[i].Path += "?" + url.Values{"instance": {id}}.Encode()
		}
	}
	return kept
}
