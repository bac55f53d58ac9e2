package web

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tendril/console"
)

// visit is one request for a page, or one turn of its live stream.
type visit struct {
	site   *Site
	screen *screen // nil where there is none
	r      *http.Request
	ctx    context.Context
	api    *console.Client
	now    time.Time

	status console.Status
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
	if v.screen != nil && v.screen.form {
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
		return 0, &console.Error{Status: http.StatusBadRequest, Message: name + " " + strconv.Quote(text) +
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
	Done   string `json:"done,omitempty"`
	Failed string `json:"failed,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// Request is the id of the request that failed.
	Request string `json:"request,omitempty"`
}

const resultCookie = "tendril_result"

// maxBodyOfForm bounds what a form may send, in bytes: a message of the largest size, escaped.
const maxBodyOfForm = 4 << 20

// perform does what a form asks for, and sends the browser back to the page that it names.
func (s *Site) perform(w http.ResponseWriter, r *http.Request, a *act) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyOfForm)
	v := newVisit(s, nil, r)
	var outcome result
	done, err := "", r.ParseForm()
	if err == nil {
		done, err = a.do(v)
	}
	if err != nil {
		problem := problemOf(err)
		if problem.Status == http.StatusUnauthorized {
			s.fail(w, v, err)
			return
		}
		outcome.Failed, outcome.Hint = problem.Message, problem.Hint
		outcome.Request = w.Header().Get(console.RequestIDHeader) // that of what the page asked of the API, too
	}
	outcome.Done = done
	text, _ := json.Marshal(outcome) // strings always encode
	http.SetCookie(w, &http.Cookie{Name: resultCookie, Value: base64.RawURLEncoding.EncodeToString(text), Path: "/",
		MaxAge: 30, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, ownPath(r.PostFormValue("back")), http.StatusSeeOther)
}

// takeResult reads the result of the last act, and removes its cookie.
func (v *visit) takeResult(w http.ResponseWriter) {
	cookie, err := v.r.Cookie(resultCookie)
	if err != nil {
		return
	}
	http.SetCookie(w, &http.Cookie{Name: resultCookie, Path: "/", MaxAge: -1, HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	var outcome result
	if text, err := base64.RawURLEncoding.DecodeString(cookie.Value); err == nil && json.Unmarshal(text, &outcome) == nil {
		v.result = &outcome
	}
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
}

func problemOf(err error) problem {
	refused := (*console.Error)(nil)
	if errors.As(err, &refused) {
		return problem{Status: refused.Status, Message: refused.Message, Hint: refused.Hint}
	}
	return problem{Message: err.Error()}
}
