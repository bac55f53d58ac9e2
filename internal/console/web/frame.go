package web

import (
	"cmp"
	"embed"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"sync"

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

func (v *visit) Title() string {
	if v.screen == nil {
		return "Problem"
	}
	return cmp.Or(v.title, v.screen.entry)
}

func (v *visit) Entry() string {
	if v.screen == nil {
		return ""
	}
	return cmp.Or(v.entry, v.screen.entry)
}

func (v *visit) Entries() []entry {
	kept := slices.Clone(entries)
	for i := range kept {
		isFleet := func(sc screen) bool { return sc.fleet && sc.entry == kept[i].Label }
		if slices.ContainsFunc(screens, isFleet) {
			kept[i].Path = v.forInstance(kept[i].Path, url.Values{})
		}
	}
	return kept
}

func (v *visit) ShowAll() string { return v.forInstance(v.r.URL.EscapedPath(), url.Values{}) }

func (v *visit) ShowBodies() string { return v.pathWith("body", "1") }

func (v *visit) forInstance(path string, query url.Values) string {
	if v.Fleet != nil && v.Fleet.Chosen != nil {
		query.Set("instance", v.Fleet.Chosen.ID)
	}
	return withQuery(path, query)
}

func (v *visit) Live() string {
	if v.screen == nil || v.screen.form || v.screen.still {
		return ""
	}
	return "/live?" + url.Values{"at": {v.Path()}}.Encode()
}

func (v *visit) Health() health.Status {
	h := v.Status.Health
	switch {
	case h == nil:
		return ""
	case h.Environment.IsShared():
		return h.Environment.Status
	}
	return h.Status
}

func (v *visit) Paused() (n int) {
	for _, w := range v.Status.Workers {
		if w.Paused {
			n++
		}
	}
	return n
}

func (v *visit) SignedIn() bool { return strings.HasPrefix(v.Caller.Who, "session ") }

func (v *visit) Receiving() bool { return v.Paused() < len(v.Status.Workers) }

func (v *visit) AllLines() string {
	query := url.Values{}
	if page, ok := v.Data.(*appPage); ok && page.Process != "" {
		query.Set("process", page.Process)
	}
	return v.forInstance("/logs", query)
}

type count struct {
	N         int64
	Attention bool
}

func (v *visit) Counts() map[string]count {
	dead := api.DeadLetterQueues(v.Status.Queues)
	letters, queues := int64(0), int64(0)
	for _, q := range v.Status.Queues {
		if dead[q.Name] {
			letters += q.Ledger.Live
		} else {
			queues++
		}
	}

	counts := map[string]count{"Queues": {N: queues}, "Dead letters": {letters, letters > 0}}
	for _, p := range v.Status.App {
		app := counts["App"]
		counts["App"] = count{app.N + 1, app.Attention || !p.Ready}
	}
	if v.Status.Tasks != nil {
		counts["Periodic tasks"] = count{N: int64(len(v.Status.Tasks.Tasks))}
	}
	return counts
}
