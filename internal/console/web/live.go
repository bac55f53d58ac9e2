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

// ServeHTTP does nothing: the multiplexer has already set the path values.
func (found) ServeHTTP(http.ResponseWriter, *http.Request) {}

// live streams one page: GET /live?at=/queues/jobs. Each event is the part of the page between header and footer.
func (s *Site) live(w http.ResponseWriter, r *http.Request) {
	at, sc := s.find(r, r.URL.Query().Get("at"))
	if sc == nil || sc.still {
		http.Error(w, "at names no page", http.StatusNotFound)
		return
	}

	if s.streams.Add(1) > maxStreams {
		s.streams.Add(-1)
		w.Header().Set("Retry-After", "10")
		http.Error(w, strconv.Itoa(maxStreams)+" pages are live already", http.StatusServiceUnavailable)
		return
	}

	defer s.streams.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := stream{w: w, rc: http.NewResponseController(w)}
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		v := newVisit(s, sc, at)
		v.streamed = true
		part, err := s.render(v, "live")
		if err == nil {
			err = out.send(part.Bytes())
			s.buffers.Put(part)
		} else if problemOf(err).Status == http.StatusUnauthorized {
			return // the session has ended, which the page shows after a reload
		} else {
			err = out.alive()
		}
		if err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Site) find(r *http.Request, path string) (*http.Request, *screen) {
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
	s.pages.ServeHTTP(nil, at)
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
