package proof

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const secret = "a-secret-of-32-characters-in-all"

func genuine(t *testing.T, known string) (url string, served *atomic.Int32) {
	t.Helper()
	served = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if !Answer(w, r, known) {
			served.Add(1)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, served
}

func post(t *testing.T, transport http.RoundTripper, url string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("a body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func TestServerThatKnowsTheSecretIsUsed(t *testing.T) {
	t.Parallel()
	url, served := genuine(t, secret)
	transport := Require(&http.Transport{}, secret)
	defer transport.CloseIdleConnections()
	for range 2 {
		if err := post(t, transport, url); err != nil {
			t.Error(err)
		}
	}
	if n := served.Load(); n != 2 {
		t.Errorf("%d requests were served, want 2", n)
	}
}

func TestServerWithoutProofGetsNothing(t *testing.T) {
	t.Parallel()
	real, _ := genuine(t, secret)
	target, err := url.Parse(real)
	if err != nil {
		t.Fatal(err)
	}
	relay := httputil.NewSingleHostReverseProxy(target)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		other  bool
	}{
		"a server with another token":  {func(w http.ResponseWriter, r *http.Request) { Answer(w, r, "another") }, true},
		"an older version":             {answer: http.NotFound},
		"an older version that serves": {answer: func(http.ResponseWriter, *http.Request) {}},
		"an impostor that repeats the challenge": {answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(header, r.Header.Get(header))
			w.WriteHeader(http.StatusNoContent)
		}},
		"an impostor that repeats the client's proof": {answer: func(w http.ResponseWriter, r *http.Request) {
			_, given, _ := strings.Cut(r.Header.Get(header), ".")
			w.Header().Set(header, given)
			w.WriteHeader(http.StatusNoContent)
		}},
		"an impostor that asks the server": {answer: relay.ServeHTTP, other: true},
		"an impostor that hangs up":        {answer: func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got record
			s := httptest.NewUnstartedServer(c.answer)
			s.Listener = &tap{s.Listener, &got}
			s.Start()
			defer s.Close()
			var unproved *Error
			if err := post(t, Require(&http.Transport{}, secret), s.URL); !errors.As(err, &unproved) || unproved.Other != c.other {
				t.Errorf("error %v; other %v, want %v", err, unproved != nil && unproved.Other, c.other)
			}
			if said := got.String(); said == "" || strings.Contains(said, secret) || strings.Contains(said, "a body") {
				t.Errorf("it got %q", said)
			}
		})
	}
}

func TestEachConnectionIsProved(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Answer(w, r, secret) }))
	transport := Require(&http.Transport{}, secret)
	if err := post(t, transport, s.URL); err != nil {
		t.Fatal(err)
	}
	address := s.Listener.Addr().String()
	s.Close()
	transport.CloseIdleConnections()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip("the port was taken:", err)
	}
	var got record
	impostor := httptest.NewUnstartedServer(http.NotFoundHandler())
	impostor.Listener.Close()
	impostor.Listener = &tap{l, &got}
	impostor.Start()
	defer impostor.Close()
	var unproved *Error
	if err := post(t, transport, s.URL); !errors.As(err, &unproved) {
		t.Errorf("the listener that took the port: %v", err)
	}
	if said := got.String(); strings.Contains(said, secret) || strings.Contains(said, "a body") {
		t.Errorf("it got %q", said)
	}
}

func TestCallersWithoutTheSecretGetNoProof(t *testing.T) {
	t.Parallel()
	url, _ := genuine(t, secret)
	for _, given := range []string{"nonce", "nonce.", ".", "nonce." + mac("guess", "client", "nonce", "127.0.0.1:1")} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(header, given)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if said := answer.Header.Get(header); said != refused || answer.StatusCode != http.StatusForbidden {
			t.Errorf("%q: status %d, %q", given, answer.StatusCode, said)
		}
	}
	if empty, _ := http.NewRequest(http.MethodGet, url, http.NoBody); Knows(empty, "") {
		t.Error("a server without a secret knows everybody")
	}
}

type record struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

type tap struct {
	net.Listener
	to *record
}

func (l *tap) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return tapped{conn, l.to}, err
}

type tapped struct {
	net.Conn
	to *record
}

func (c tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.to.text.Write(p[:n])
	return n, err
}
