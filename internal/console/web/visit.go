package web

import (
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

// visit is one request for a page, or one turn of its live stream.
type visit struct {
	site   *Site
	screen *screen // nil where there is none
	r      *http.Request
	ctx    context.Context
	api    *api.Client
	now    time.Time

	status api.Status
	result *result
	title  string // of the page; that of the entry where load sets none
	entry  string // of the navigation; that of the screen where load sets none
	Data   any    // what the screen shows
}

func newVisit(s *Site, sc *screen, r *http.Request) *visit {
	return &visit{site: s, screen: sc, r: r, ctx: r.Context(), api: s.opts.Client(r), now: time.Now()}
}

// load reads the state for the frame, and what the screen shows.
func (v *visit) load() (err error) {
	if v.status, err = v.api.Status(v.ctx); err != nil {
		return err
	}
	v.api.Bodies = v.query("body") == "1"
	v.Data, err = v.screen.load(v)
	return err
}

// path is the path of the page with its query, which finds it again: for the answer to a form the page before it.
func (v *visit) path() string {
	if v.r.Method == http.MethodPost {
		return ownPath(v.r.PostFormValue("back"))
	}
	return v.r.URL.RequestURI()
}

// name is the part of the path that a pattern calls so.
func (v *visit) name(wildcard string) string { return v.r.PathValue(wildcard) }

// query is one parameter of the page.
func (v *visit) query(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

// field is one field of the form that was sent.
func (v *visit) field(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }

// number is a whole number of the form; 0 when the field is empty.
func (v *visit) number(name string) (int, error) {
	text := v.field(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, &api.Error{Status: http.StatusBadRequest, Message: name + " " + strconv.Quote(text) +
			" is not a whole number", Hint: "use digits alone"}
	}
	return n, nil
}

// with is the address of this page with one parameter set, or left out for "".
func (v *visit) with(name, value string) string {
	query := v.r.URL.Query()
	query.Del("after")
	query.Set(name, value)
	if value == "" {
		query.Del(name)
	}
	if len(query) == 0 {
		return v.r.URL.EscapedPath()
	}
	return v.r.URL.EscapedPath() + "?" + query.Encode()
}

// result is what the last act did, shown once on the page after it.
type result struct {
	Done, Failed, Hint string
	// Request is the id of the request that failed.
	Request string
	until   time.Time // it is shown only until then
}

// results are those that no page has shown yet, by who acted. A cookie in their place could come from any port of the
// host.
type results struct {
	mu    sync.Mutex
	byWho map[string]*result
}

// resultLifetime is how long a result waits for the page after its act.
const resultLifetime = 30 * time.Second

// put keeps the result of an act, and drops those that nothing has shown.
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

// take returns the result of the last act, once; nil for none.
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

// keyField is the field of a form with the key of the session. The script adds it.
const keyField = "session-key"

// parseForm reads the form of a request, and the key of its session for the API.
func parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyOfForm)
	if err := r.ParseForm(); err != nil {
		return &api.Error{Status: http.StatusBadRequest, Message: "the form is incomplete: " + err.Error()}
	}
	if key := strings.TrimSpace(r.PostForm.Get(keyField)); key != "" {
		r.Header.Set(api.SessionKeyHeader, key)
	}
	r.PostForm.Del(keyField)
	return nil
}

// maxBodyOfForm bounds what a form may send, in bytes: a message of the largest size, escaped.
const maxBodyOfForm = 4 << 20

// perform does what a form asks for, and sends the browser back to the page that it names.
func (s *Site) perform(w http.ResponseWriter, r *http.Request, a *act) {
	err := parseForm(w, r)
	v := newVisit(s, nil, r)
	outcome := &result{}
	if err == nil {
		outcome.Done, err = a.do(v)
	}
	if err != nil {
		problem := problemOf(err)
		if problem.Status == http.StatusUnauthorized || problem.NoKey {
			s.fail(w, v, err)
			return
		}
		outcome.Done, outcome.Failed, outcome.Hint = "", problem.Message, problem.Hint
		outcome.Request = w.Header().Get(api.RequestIDHeader) // that of what the page asked of the API, too
	}
	if who := v.who(); who != "" {
		s.results.put(who, outcome)
	}
	http.Redirect(w, r, ownPath(r.PostFormValue("back")), http.StatusSeeOther)
}

// who is the sender of the request for the API; "" when that is unknown.
func (v *visit) who() string {
	c, err := v.api.Caller(v.ctx)
	if err != nil {
		return ""
	}
	return c.Who
}

// ownPath is a path of this site, "/" for what may lead elsewhere.
func ownPath(back string) string {
	u, err := url.Parse(back)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(back, "//") || strings.ContainsAny(back, "\\\r\n") {
		return "/"
	}
	return back
}

// problem is an error for people.
type problem struct {
	Status        int
	Message, Hint string
	Request       string // the id of the request
	NoKey         bool   // the key of the session is missing
}

func problemOf(err error) problem {
	refused := (*api.Error)(nil)
	if errors.As(err, &refused) {
		return problem{Status: refused.Status, Message: refused.Message, Hint: refused.Hint,
			NoKey: refused.Code == api.CodeSessionKey}
	}
	return problem{Message: err.Error()}
}
