package web

import (
	"bytes"
	"cmp"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/api"
	"tendril/internal/console"
)

// Options configure a [Site].
type Options struct {
	// Client returns a client with the permissions of the request's sender.
	Client func(*http.Request) *api.Client
	Logger *slog.Logger // logs rendering failures; may be nil
}

// Site serves the pages. It is an [http.Handler].
type Site struct {
	opts     Options
	log      *slog.Logger
	mux      *http.ServeMux
	pages    *http.ServeMux
	streams  atomic.Int64
	buffers  sync.Pool
	curves   recentCurves
	results  results
	patience time.Duration // of forms that deploy or restart
}

type screen struct {
	path  string
	entry string
	view  string
	load  func(*visit) (any, error)
	// fleet screens show all instances, or the one in the URL.
	fleet bool
	// form screens answer a form, whose field back contains the previous page.
	form bool
	// still screens are forms to fill in: they need the scope act, and are not live.
	still bool
}

type act struct {
	path string
	do   func(*visit) (done string, err error)
}

var (
	screens = slices.Concat(overviewScreens, queueScreens, messageScreens, deadScreens, taskScreens, appScreens,
		deploymentScreens, scalingScreens, instanceScreens, configurationScreens, eventScreens, logScreens)
	acts = slices.Concat(environmentActs, queueActs, messageActs, deadActs, taskActs, appActs, deploymentActs,
		configurationActs)
)

// Actions returns the paths of all actions, sorted, as patterns of [http.ServeMux].
func Actions() (paths []string) {
	for i := range acts {
		paths = append(paths, acts[i].path)
	}
	slices.Sort(paths)
	return paths
}

var entries = []entry{
	{"Overview", "/", "o"},
	{"Queues", "/queues", "q"},
	{"Dead letters", "/dead", "d"},
	{"Periodic tasks", "/tasks", "t"},
	{"App", "/app", "a"},
	{"Deployments", "/deployments", "p"},
	{"Scaling", "/scaling", "s"},
	{"Instances", "/instances", "i"},
	{"Configuration", "/configuration", "c"},
	{"Events", "/events", "e"},
	{"Logs", "/logs", "l"},
}

// Typing g and then Key opens the entry.
type entry struct{ Label, Path, Key string }

// New returns a site.
func New(opts Options) *Site {
	s := &Site{opts: opts, mux: http.NewServeMux(), pages: http.NewServeMux(), patience: 400 * time.Millisecond}
	s.log = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s.buffers.New = func() any { return new(bytes.Buffer) }
	for i := range screens {
		if screens[i].form {
			s.mux.Handle("POST "+screens[i].path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.showForm(w, newVisit(s, &screens[i], r))
			}))
			continue
		}
		s.mux.Handle("GET "+screens[i].path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.showPage(w, newVisit(s, &screens[i], r))
		}))
		s.pages.Handle("GET "+screens[i].path, screenHandler{&screens[i]})
	}
	for i := range acts {
		s.mux.Handle("POST "+acts[i].path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.perform(w, r, &acts[i])
		}))
	}

	s.mux.HandleFunc("GET /live", s.serveLive)
	s.mux.HandleFunc("GET /login", s.showLogin)
	s.mux.HandleFunc("GET /messages/{id}/body", s.download)
	s.mux.HandleFunc("GET /messages", s.redirectToMessage)
	s.mux.HandleFunc("GET /assets/{file}", serveAsset)
	s.mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s.showError(w, newVisit(s, nil, r), api.NotFound("page not found: "+r.URL.Path, "the menu lists all pages"))
	})
	return s
}

func (s *Site) showLogin(w http.ResponseWriter, r *http.Request) {
	v := newVisit(s, nil, r)
	if key := console.NewSessionKey(r); key != "" {
		v.Data = key
		s.answerWith(w, v, "signedin", http.StatusOK)
		return
	}
	v.Data = r.URL.Query().Has("code")
	s.answerWith(w, v, "signin", http.StatusUnauthorized)
}

func (s *Site) redirectToMessage(w http.ResponseWriter, r *http.Request) {
	v := newVisit(s, nil, r)
	id := v.query("message")
	if d, err := v.api.LastOutcome(v.ctx, id); err == nil {
		id = d.MessageID
	}
	http.Redirect(w, r, "/messages/"+url.PathEscape(id), http.StatusSeeOther)
}

// ServeHTTP implements [http.Handler].
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer, browsers would send "Origin: null" with forms, as other sites' pages can.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

func (s *Site) showForm(w http.ResponseWriter, v *visit) {
	if err := parseForm(w, v.r); err != nil {
		s.showError(w, v, err)
		return
	}
	s.showPage(w, v)
}

type movedError struct{ to string }

func (e *movedError) Error() string { return "moved to " + e.to }

func (s *Site) showPage(w http.ResponseWriter, v *visit) {
	v.Result = s.results.take(v.who())
	page, err := s.render(v, "page")
	if moved, ok := errors.AsType[*movedError](err); ok {
		http.Redirect(w, v.r, moved.to, http.StatusFound)
		return
	}
	if err != nil {
		s.showError(w, v, err)
		return
	}
	s.writePage(w, http.StatusOK, page)
}

// part is "page", or "live" for the part that the stream replaces.
func (s *Site) render(v *visit, part string) (*bytes.Buffer, error) {
	if err := v.load(); err != nil {
		return nil, err
	}
	return s.execute(view(v.screen.view), v, part)
}

func (s *Site) execute(view *template.Template, v *visit, part string) (*bytes.Buffer, error) {
	page := s.buffers.Get().(*bytes.Buffer)
	page.Reset()
	if err := view.ExecuteTemplate(page, part, v); err != nil {
		s.log.Error("rendering a page failed", "path", v.Path(), "err", err)
		return nil, errors.New("rendering the page failed; see tendril's log")
	}

	if bytes.IndexByte(page.Bytes(), '\r') < 0 {
		return page, nil
	}
	// Browsers turn carriage returns into line feeds unless they are character references.
	escaped := bytes.ReplaceAll(page.Bytes(), []byte("\r"), []byte("&#13;"))
	page.Reset()
	page.Write(escaped)
	return page, nil
}

func (s *Site) showError(w http.ResponseWriter, v *visit, err error) {
	refusal := refusalOf(err)
	refusal.RequestID = w.Header().Get(api.RequestIDHeader)
	v.screen = nil
	if refusal.Status == http.StatusUnauthorized {
		v.Data = false // not after a login link
		s.answerWith(w, v, "signin", refusal.Status)
		return
	}

	v.Data = refusal
	if v.Status.Environment == "" {
		v.Status, _ = v.api.Status(v.ctx) // needed only for the frame
		v.Caller, _ = v.api.Caller(v.ctx)
	}
	name := "error"
	if refusal.Code == api.CodeSessionKey {
		name = "key"
		v.Data = &refusedForm{Action: v.r.URL.RequestURI(), Values: v.r.PostForm}
	}
	s.answerWith(w, v, name, refusal.Status)
}

func (s *Site) answerWith(w http.ResponseWriter, v *visit, name string, status int) {
	page, err := s.execute(view(name), v, "page")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.writePage(w, status, page)
}

func (s *Site) writePage(w http.ResponseWriter, status int, page *bytes.Buffer) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(page.Bytes())
	s.buffers.Put(page)
}
