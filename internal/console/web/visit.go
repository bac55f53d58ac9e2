package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"tendril/api"
)

type visit struct {
	site   *Site
	screen *screen
	r      *http.Request
	ctx    context.Context
	api    *api.Client
	now    time.Time

	title string // defaults to the entry's name
	entry string // defaults to the screen's

	// Templates read the exported fields and methods.
	Status api.Status
	Caller api.Caller
	Fleet  *fleetView // nil unless the screen can show several instances and there are several
	Result *result
	Stream bool // an update of a live page; omits parts that the browser keeps
	Data   any
}

func newVisit(s *Site, sc *screen, r *http.Request) *visit {
	return &visit{site: s, screen: sc, r: r, ctx: r.Context(), api: s.opts.Client(r), now: time.Now()}
}

func (v *visit) load() (err error) {
	if v.Status, err = v.api.Status(v.ctx); err != nil {
		return err
	}
	if v.Caller, err = v.api.Caller(v.ctx); err != nil {
		return err
	}
	if v.screen.still && !v.Caller.May(api.ScopeAct) {
		return v.refusalToAct()
	}
	if v.screen.fleet {
		if err := v.findFleet(); err != nil {
			return err
		}
	}
	v.api.Bodies = v.query("body") == "1"
	v.Data, err = v.screen.load(v)
	return err
}

func (v *visit) refusalToAct() error {
	switch {
	case v.Caller.ReadOnly:
		return api.Forbidden("the console is read-only", "")
	case v.Caller.Who == "":
		return api.Unauthorized("sign in to act", "")
	}
	return api.Forbidden("you may only read here",
		"an action needs the scope act: 'tendril open --scope act'")
}

// Path returns the page's path with the query or, for a form submission, the page to return to.
func (v *visit) Path() string {
	if v.r.Method == http.MethodPost {
		return ownPath(v.r.PostFormValue("back"))
	}
	return v.r.URL.RequestURI()
}

func (v *visit) name(wildcard string) string { return v.r.PathValue(wildcard) }

func (v *visit) query(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

func (v *visit) field(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }

func (v *visit) number(name string) (int, error) {
	text := v.field(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, invalid(name, name+" "+strconv.Quote(text)+" is not a whole number: use digits alone")
	}
	return n, nil
}

func (v *visit) pathWith(name, value string) string {
	query := v.r.URL.Query()
	query.Del("after")
	query.Set(name, value)
	if value == "" {
		query.Del(name)
	}
	return withQuery(v.r.URL.EscapedPath(), query)
}

func withQuery(path string, query url.Values) string {
	return strings.TrimSuffix(path+"?"+query.Encode(), "?")
}

type result struct {
	Done    string
	Refusal *api.Error // nil after success
	Form    *refusedForm
	until   time.Time
}

type refusedForm struct {
	Action string
	Field  string
	Values url.Values
}

const maxRefusedForm = 1 << 20

func (v *visit) refusedForm(err error) *refusedForm {
	size := 0
	for _, texts := range v.r.PostForm {
		for _, text := range texts {
			size += len(text)
		}
	}
	if size > maxRefusedForm {
		return nil
	}

	form := &refusedForm{Action: v.r.URL.EscapedPath(), Values: v.r.PostForm}
	if wrong, ok := errors.AsType[*fieldError](err); ok {
		form.Field = wrong.field
	}
	return form
}

type fieldError struct {
	field string
	error
}

func (e *fieldError) Unwrap() error { return e.error }

func invalid(field, message string) error {
	return &fieldError{field, api.BadRequest(message, "")}
}

// Pending results are not in cookies, because any port of the host could set those.
type results struct {
	mu    sync.Mutex
	byWho map[string]*result
}

const resultLifetime = 30 * time.Second

func (s *results) put(who string, r *result) {
	s.mu.Lock()
	defer s.mu.Unlock()

	now := time.Now()
	maps.DeleteFunc(s.byWho, func(_ string, old *result) bool { return now.After(old.until) })
	if s.byWho == nil {
		s.byWho = map[string]*result{}
	}
	r.until = now.Add(resultLifetime)
	s.byWho[who] = r
}

func (s *results) take(who string) *result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byWho[who]
	delete(s.byWho, who)
	if r != nil && time.Now().After(r.until) {
		return nil
	}
	return r
}

const keyField = "session-key"

func parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyOfForm)
	if err := r.ParseForm(); err != nil {
		return api.BadRequest("the form is incomplete: "+err.Error(), "")
	}
	if key := strings.TrimSpace(r.PostForm.Get(keyField)); key != "" {
		r.Header.Set(api.SessionKeyHeader, key)
	}
	r.PostForm.Del(keyField)
	return nil
}

// maxBodyOfForm suffices for a message of the maximum size with every byte escaped.
const maxBodyOfForm = 4 << 20

func (s *Site) perform(w http.ResponseWriter, r *http.Request, a *act) {
	v := newVisit(s, nil, r)
	err := parseForm(w, r)
	done := ""
	if err == nil {
		done, err = a.do(v)
	}

	back := v.Path()
	if err == nil {
		s.redirectWith(w, v, &result{Done: done}, back)
		return
	}

	refusal := refusalOf(err)
	if refusal.Status == http.StatusUnauthorized || refusal.Code == api.CodeSessionKey {
		s.showError(w, v, err)
		return
	}
	refusal.RequestID = w.Header().Get(api.RequestIDHeader)
	s.redirectWith(w, v, &result{Refusal: refusal, Form: v.refusedForm(err)}, cmp.Or(s.formPage(r), back))
}

func (s *Site) redirectWith(w http.ResponseWriter, v *visit, outcome *result, to string) {
	if who := v.who(); who != "" {
		s.results.put(who, outcome)
	}
	http.Redirect(w, v.r, to, http.StatusSeeOther)
}

func (s *Site) formPage(r *http.Request) string {
	u, err := url.Parse(r.Referer())
	if err != nil || u.Host != r.Host {
		return ""
	}
	path := ownPath(u.RequestURI())
	if _, sc := s.screenAt(r, path); sc == nil {
		return ""
	}
	return path
}

func (v *visit) who() string {
	c, err := v.api.Caller(v.ctx)
	if err != nil {
		return ""
	}
	return c.Who
}

// ownPath prevents redirects to other sites.
func ownPath(back string) string {
	u, err := url.Parse(back)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(back, "//") || strings.ContainsAny(back, "\\\r\n") {
		return "/"
	}
	return back
}

func refusalOf(err error) *api.Error {
	refused, ok := errors.AsType[*api.Error](err)
	if !ok {
		return api.NewError(http.StatusInternalServerError, err.Error(), "")
	}
	shown := *refused
	shown.Status = cmp.Or(shown.Status, http.StatusInternalServerError)
	return &shown
}

func isConflict(err error) bool { return api.HasStatus(err, http.StatusConflict) }
