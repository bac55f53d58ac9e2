package web

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tendril/internal/console"
)

const (
	maxStreams = 64
	liveEvery  = time.Second
	aliveEvery = 15 * time.Second
	writeWait  = 10 * time.Second
)

type found struct{ screen *screen }

// ServeHTTP writes nothing, because only the multiplexer's path values are of interest.
func (found) ServeHTTP(http.ResponseWriter, *http.Request) {}

// live streams one page: GET /live?at=/queues/jobs. Each event is the part of the page between header and footer.
func (s *Site) live(w http.ResponseWriter, r *http.Request) {
	at, sc := s.screenAt(r, r.URL.Query().Get("at"))
	if sc == nil || sc.still {
		http.Error(w, "at names no page", http.StatusNotFound)
		return
	}

	defer s.streams.Add(-1)
	if s.streams.Add(1) > maxStreams {
		w.Header().Set("Retry-After", "10")
		http.Error(w, strconv.Itoa(maxStreams)+" pages are live already", http.StatusServiceUnavailable)
		return
	}

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := stream{w: w, rc: http.NewResponseController(w)}
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		if err := s.sendUpdate(&out, sc, at); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// sendUpdate returns an error if the stream must end.
func (s *Site) sendUpdate(out *stream, sc *screen, at *http.Request) error {
	v := newVisit(s, sc, at)
	v.streamed = true
	part, err := s.render(v, "live")
	if err != nil {
		if problemOf(err).Status == http.StatusUnauthorized {
			return err // the session has ended, which the page shows after a reload
		}
		return out.alive()
	}
	defer s.buffers.Put(part)
	return out.send(part.Bytes())
}

// screenAt returns the screen at path and a GET request for it with r's headers. Both are nil if path has no screen.
func (s *Site) screenAt(r *http.Request, path string) (*http.Request, *screen) {
	u, err := url.Parse(ownPath(path))
	if err != nil {
		return nil, nil
	}
	at := r.Clone(r.Context())
	at.Method = http.MethodGet
	at.URL, at.RequestURI = u, u.RequestURI()

	h, pattern := s.pages.Handler(at)
	page, ok := h.(found)
	if !ok || pattern == "" {
		return nil, nil
	}
	s.pages.ServeHTTP(nil, at) // sets the path values; found writes nothing
	return at, page.screen
}

type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	id   int
	last []byte
	sent time.Time
}

func (s *stream) send(part []byte) error {
	if bytes.Equal(part, s.last) {
		return s.alive()
	}
	s.last = append(s.last[:0], part...)
	s.id++
	event := make([]byte, 0, len(part)+len(part)/16+64)
	return s.write(console.AppendEvent(event, int64(s.id), part))
}

func (s *stream) alive() error {
	if time.Since(s.sent) < aliveEvery {
		return nil
	}
	return s.write([]byte(": alive\n\n"))
}

func (s *stream) write(event []byte) error {
	now := time.Now()
	// Connections in tests have no deadlines.
	_ = s.rc.SetWriteDeadline(now.Add(writeWait))
	if _, err := s.w.Write(event); err != nil {
		return err
	}
	s.sent = now
	return s.rc.Flush()
}
