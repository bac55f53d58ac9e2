package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/api"
	"tendril/internal/observe/event"
	"tendril/internal/observe/eventlog"
)

func newHistory(t *testing.T) History {
	t.Helper()
	log := eventlog.Open(t.TempDir(), func(err error) { t.Error(err) })
	t.Cleanup(func() { _ = log.Close() })
	for i, kind := range []string{string(event.Start), string(event.Pause), string(event.Act), string(event.Pause), string(event.Stop)} {
		log.Add(kind, "something happened", map[string]string{"queue": fmt.Sprintf("jobs-%d", i+1)})
	}
	lines := eventlog.NewLines()
	for i, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		lines.Add(eventlog.Line{At: time.Unix(int64(i), 0), Process: eventlog.Own, Level: level, Text: level.String()})
	}
	lines.Add(eventlog.Line{Process: "web.1", Stream: "stdout", Text: "GET /Orders"})
	return History{Events: log, Lines: lines}
}

func TestClientFindsEvents(t *testing.T) {
	t.Parallel()
	c := dial(t, &Options{History: newHistory(t)})
	for name, tt := range map[string]struct {
		filter api.EventFilter
		want   []int64
	}{
		"the newest":   {api.EventFilter{Limit: 2}, []int64{5, 4}},
		"all":          {api.EventFilter{}, []int64{5, 4, 3, 2, 1}},
		"older ones":   {api.EventFilter{Before: 3}, []int64{2, 1}},
		"what follows": {api.EventFilter{After: 2, Limit: 2}, []int64{3, 4}},
		"of kinds":     {api.EventFilter{Kinds: []string{string(event.Pause), string(event.Stop)}}, []int64{5, 4, 2}},
		"with a text":  {api.EventFilter{Match: "JOBS-3"}, []int64{3}},
		"since":        {api.EventFilter{Since: time.Now().Add(time.Hour)}, nil},
	} {
		events, err := c.Events(t.Context(), tt.filter)
		var got []int64
		for _, e := range events {
			got = append(got, e.ID)
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tt.want)
		}
	}
}

func TestClientFindsLines(t *testing.T) {
	t.Parallel()
	c := dial(t, &Options{History: newHistory(t)})
	for name, tt := range map[string]struct {
		filter api.LineFilter
		want   string
	}{
		"the newest":   {api.LineFilter{Limit: 2}, "GET /Orders, WARN"},
		"debug":        {api.LineFilter{Level: slog.LevelDebug}, "GET /Orders, WARN, INFO, DEBUG"},
		"warnings":     {api.LineFilter{Level: slog.LevelWarn}, "WARN"},
		"of a process": {api.LineFilter{Process: "web"}, "GET /Orders"},
		"with a text":  {api.LineFilter{Match: "orders"}, "GET /Orders"},
	} {
		lines, err := c.Logs(t.Context(), tt.filter)
		var got []string
		for _, l := range lines {
			got = append(got, l.Text)
		}
		if err != nil || strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %v, %v, want %s", name, got, err, tt.want)
		}
	}
}

func TestBadFiltersAreRefused(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken, History: newHistory(t)})
	owner := func(path string) *http.Request { return with(get(path), "Authorization", "Bearer "+testToken) }
	for path, want := range map[string]string{
		"/api/v1/events?kind=start,lunch": "unknown event kind", "/api/v1/events?after=x": "not an ID",
		"/api/v1/events?before=-1": "not an ID", "/api/v1/events?since=yesterday": "not a time",
		"/api/v1/events?limit=1001": "out of range", "/api/v1/logs?level=loud": "unknown level",
		"/api/v1/logs?match=" + strings.Repeat("x", maxMatch+1): "longer",
	} {
		if code, body := exchange(t, s, owner(path)); code != http.StatusBadRequest ||
			!strings.Contains(fmt.Sprint(body), want) {
			t.Errorf("%s: %d %v", path, code, body)
		}
	}
	if code, body := exchange(t, s, with(with(owner("/api/v1/events"), "Accept", "text/event-stream"), "Last-Event-ID",
		"five")); code != http.StatusBadRequest {
		t.Errorf("a wrong Last-Event-ID: %d %v", code, body)
	}
	none := New(&Options{Token: testToken})
	for _, path := range []string{"/api/v1/events", "/api/v1/logs"} {
		if code, body := exchange(t, none, owner(path)); code != http.StatusConflict {
			t.Errorf("%s where nothing is kept: %d %v", path, code, body)
		}
		if code, body := exchange(t, s, get(path)); code != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d %v", path, code, body)
		}
	}
}

func TestFollowersGetWhatHappens(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	var server *http.Server
	c, listener := dialServer(t, &Options{History: h}, func(s *http.Server) { server = s })
	enough := errors.New("enough")
	var got []int64
	pauses := api.EventFilter{After: 3, Kinds: []string{string(event.Pause)}}
	err := c.FollowEvents(t.Context(), pauses, func(e eventlog.Event) error {
		if got = append(got, e.ID); len(got) == 1 {
			h.Events.Add(string(event.Act), "something happened", nil)
			h.Events.Add(string(event.Pause), "something happened", nil)
			return nil
		}
		return enough
	})
	if !errors.Is(err, enough) || !slices.Equal(got, []int64{4, 7}) {
		t.Errorf("followed %v, %v", got, err)
	}
	var texts []string
	begun := make(chan struct{})
	server.Handler = begins{server.Handler, begun}
	go func() {
		<-begun
		h.Lines.Add(eventlog.Line{Process: "web.1", Text: "one"})
		h.Lines.Add(eventlog.Line{Process: "web.1", Text: "two"})
	}()
	err = c.FollowLogs(t.Context(), api.LineFilter{}, func(l eventlog.Line) error {
		if texts = append(texts, l.Text); len(texts) == 2 {
			listener.Config.Handler.(begins).Handler.(*Server).Close()
		}
		return nil
	})
	if err != nil || !slices.Equal(texts, []string{"one", "two"}) {
		t.Errorf("followed %q, %v", texts, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = c.FollowLogs(ctx, api.LineFilter{}, func(eventlog.Line) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a follower that was canceled: %v", err)
	}
}

type begins struct {
	http.Handler
	begun chan struct{}
}

func (b begins) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.Handler.ServeHTTP(&beginWriter{ResponseWriter: w, begun: b.begun}, r)
}

type beginWriter struct {
	http.ResponseWriter
	begun chan struct{}
	once  bool
}

func (w *beginWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *beginWriter) Write(p []byte) (int, error) {
	if !w.once {
		w.once = true
		close(w.begun)
	}
	return w.ResponseWriter.Write(p)
}

func TestStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := eventlog.NewLines()
		s := New(&Options{Token: testToken, History: History{Lines: lines}})
		ask := func(path string, header ...string) *http.Request {
			r := with(get(path), "Authorization", "Bearer "+testToken)
			r.Host = "127.0.0.1"
			return with(r, "Accept", "text/html, text/event-stream;q=0.5")
		}
		rec := httptest.NewRecorder()
		ended := make(chan struct{})
		go func() { s.ServeHTTP(rec, ask("/api/v1/logs")); close(ended) }()
		synctest.Wait()
		lines.Add(eventlog.Line{Process: "web", Text: "a\u2028b"})
		time.Sleep(streamSilence + time.Second)
		synctest.Wait()
		for range maxStreams - 1 {
			go s.ServeHTTP(blind{httptest.NewRecorder()}, ask("/api/v1/logs"))
		}
		synctest.Wait()
		refused := httptest.NewRecorder()
		s.ServeHTTP(refused, ask("/api/v1/logs"))
		if refused.Code != http.StatusServiceUnavailable || refused.Header().Get("Retry-After") == "" {
			t.Errorf("one stream too many: %d %v", refused.Code, refused.Header())
		}
		s.Close()
		<-ended
		newest := lines.Read(eventlog.LineQuery{})[0]
		want := fmt.Sprintf(": stream started\n\nid: %d\ndata: {\"id\":%d,", newest.ID, newest.ID)
		got := rec.Body.String()
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "}\n\n: alive\n\n") ||
			rec.Header().Get("Content-Type") != "text/event-stream" || rec.Header().Get("X-Accel-Buffering") != "no" {
			t.Errorf("streamed %q with %v", got, rec.Header())
		}
		synctest.Wait()
		if n := s.streams.open.Load(); n != 0 {
			t.Errorf("%d streams are open after the end", n)
		}
	})
}

type blind struct{ *httptest.ResponseRecorder }

func (blind) Write(p []byte) (int, error) { return io.Discard.Write(p) }
