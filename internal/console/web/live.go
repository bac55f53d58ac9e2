package web

import (
	"bytes"
	"errors"
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
)

type screenHandler struct{ screen *screen }

// ServeHTTP does nothing: screenAt calls the multiplexer only to set path values.
func (screenHandler) ServeHTTP(http.ResponseWriter, *http.Request) {}

type livePage struct {
	screen *screen
	at     *http.Request
}

func (s *Site) serveLive(w http.ResponseWriter, r *http.Request) {
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

	out := stream{events: console.StartEvents(w)}
	page := livePage{sc, at}
	for {
		began := time.Now()
		if err := s.sendUpdate(&out, &page); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(liveWait(time.Since(began))):
		}
	}
}

// liveWait lets updates take at most a tenth of the time, unless they would be further apart than aliveEvery.
func liveWait(took time.Duration) time.Duration {
	return min(max(liveEvery, 9*took), aliveEvery)
}

// sendUpdate returns an error if the stream must end. It follows a page that has moved, so that its updates do not
// repeat the search for the new address.
func (s *Site) sendUpdate(out *stream, page *livePage) error {
	v := newVisit(s, page.screen, page.at)
	v.Stream = true
	part, err := s.render(v, "live")
	if moved, ok := errors.AsType[*movedError](err); ok {
		page.at, page.screen = s.screenAt(page.at, moved.to)
		return s.sendUpdate(out, page)
	}
	if err != nil {
		if refusalOf(err).Status == http.StatusUnauthorized {
			return err // the session has ended, which the page shows after a reload
		}
		return out.keepAlive()
	}
	defer s.buffers.Put(part)
	return out.send(part.Bytes())
}

// Both results are nil if path has no screen.
func (s *Site) screenAt(r *http.Request, path string) (*http.Request, *screen) {
	u, err := url.Parse(ownPath(path))
	if err != nil {
		return nil, nil
	}
	at := r.Clone(r.Context())
	at.Method = http.MethodGet
	at.URL, at.RequestURI = u, u.RequestURI()

	handler, _ := s.pages.Handler(at)
	page, isScreen := handler.(screenHandler)
	if !isScreen {
		return nil, nil
	}
	s.pages.ServeHTTP(nil, at) // sets the path values
	return at, page.screen
}

type stream struct {
	events console.EventWriter
	id     int
	last   []byte
	sent   time.Time
}

func (s *stream) send(part []byte) error {
	if bytes.Equal(part, s.last) {
		return s.keepAlive()
	}
	s.last = append(s.last[:0], part...)
	s.id++
	event := make([]byte, 0, len(part)+len(part)/16+64)
	return s.write(console.AppendEvent(event, int64(s.id), part))
}

func (s *stream) keepAlive() error {
	if time.Since(s.sent) < aliveEvery {
		return nil
	}
	return s.write([]byte(": alive\n\n"))
}

func (s *stream) write(event []byte) error {
	s.sent = time.Now()
	return s.events.Write(event)
}
