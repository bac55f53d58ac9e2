package peers

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/host/proof"
	"tendril/internal/instances"
)

const key = instances.FleetKey("fleet-key-0123456789")

type service struct {
	*httptest.Server
	connections, requests atomic.Int64
}

func serve(t *testing.T, encrypted, proves bool, answer http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if proves && proof.Answer(w, r, key.PeerSecrets("shop", "b")[0]) {
			return
		}
		if r.URL.Path != "/" {
			s.requests.Add(1)
		}
		answer(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	if encrypted {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *service) record() instances.Instance {
	r := instances.Record{ID: "b", Name: "worker-2", Host: "here", Console: s.Listener.Addr().String()}
	if s.TLS != nil {
		r.Certificate = api.CertificateFingerprint(s.Certificate().Raw)
	}
	return instances.Instance{Record: r}
}

func newPeers(t *testing.T, records ...instances.Instance) (*Peers, *strings.Builder) {
	t.Helper()
	log := &strings.Builder{}
	p := New(Options{Environment: "shop", ID: "a", Host: "here", Key: key,
		List: func(context.Context) ([]instances.Instance, error) { return records, nil },
		Log:  slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(p.Close)
	return p, log
}

func (p *Peers) status(t *testing.T) (api.Status, *api.Error) {
	t.Helper()
	var st api.Status
	err := p.Answer(t.Context(), "b", &api.Request{Pattern: api.GetStatus.Pattern}, &st)
	var refusal *api.Error
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("the error is %T: %v", err, err)
	}
	return st, refusal
}

func answerStatus(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"environment":"shop"}`)) }

func TestInstancesReadFromEachOther(t *testing.T) {
	t.Parallel()
	for name, encrypted := range map[string]bool{"TLS": true, "the loopback interface of one host": false} {
		s := serve(t, encrypted, true, answerStatus)
		p, _ := newPeers(t, s.record())
		for range 10 {
			if st, err := p.status(t); err != nil || st.Environment != "shop" {
				t.Errorf("%s: %+v, %v", name, st, err)
			}
		}
		// net/http reuses a connection only if it learns within 50 ms of the response that the request was written.
		if n := s.connections.Load(); n > 3 {
			t.Errorf("%s: ten requests used %d connections", name, n)
		}
	}
}

func TestAnotherServiceAtTheAddressGetsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		encrypted, proves bool
		edit              func(*instances.Instance)
	}{
		"another certificate":                 {true, true, func(i *instances.Instance) { i.Certificate = strings.Repeat("0", 64) }},
		"the same certificate, no fleet key":  {true, false, nil},
		"a program on the loopback interface": {false, false, nil},
		"another instance":                    {true, true, func(i *instances.Instance) { i.ID = "c" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.encrypted, c.proves, answerStatus)
			record := s.record()
			if c.edit != nil {
				c.edit(&record)
			}
			p, log := newPeers(t, record)
			for range 2 {
				err := p.Answer(t.Context(), record.ID, &api.Request{Pattern: api.GetStatus.Pattern}, new(api.Status))
				var refusal *api.Error
				if !errors.As(err, &refusal) || refusal.Status != http.StatusBadGateway || !strings.Contains(err.Error(), "another service responds") {
					t.Errorf("the answer is %v", err)
				}
			}
			if n := s.requests.Load(); n > 0 {
				t.Errorf("the service received %d requests", n)
			}
			if n := strings.Count(log.String(), "another service responds at the address of an instance"); n != 1 {
				t.Errorf("%d lines in the log: %s", n, log)
			}
		})
	}
}

// A record must not cause a connection if it is forged, unsigned or old, or if its address may be another host's or
// service's.
func TestOnlyAddressesOfTheRecordAreContacted(t *testing.T) {
	t.Parallel()
	s := serve(t, true, true, answerStatus)
	for name, c := range map[string]struct {
		edit func(*instances.Instance)
		want string
	}{
		"a forged record":               {func(i *instances.Instance) { i.Refused = instances.ErrForged }, "not authenticated"},
		"an unsigned record":            {func(i *instances.Instance) { i.Refused = instances.ErrUnsigned }, "not authenticated"},
		"an old record":                 {func(i *instances.Instance) { i.Age = instances.FreshFor }, "not reported"},
		"no address":                    {func(i *instances.Instance) { i.Console = "" }, "off"},
		"a name":                        {func(i *instances.Instance) { i.Console = "localhost:9325" }, "invalid"},
		"all addresses":                 {func(i *instances.Instance) { i.Console = "0.0.0.0:9325" }, "invalid"},
		"an address with a path":        {func(i *instances.Instance) { i.Console += "/latest/meta-data" }, "invalid"},
		"loopback of another host":      {func(i *instances.Instance) { i.Host = "there" }, "loopback only"},
		"loopback in IPv6":              {func(i *instances.Instance) { i.Host = "there"; i.Console = "[::1]:9325" }, "loopback only"},
		"loopback as IPv4 in IPv6":      {func(i *instances.Instance) { i.Host = "there"; i.Console = "[::ffff:127.0.0.1]:9325" }, "loopback only"},
		"the metadata service":          {func(i *instances.Instance) { i.Host = "there"; i.Console = "169.254.169.254:80" }, "link-local"},
		"a link-local address":          {func(i *instances.Instance) { i.Host = "there"; i.Console = "[fe80::1]:9325" }, "link-local"},
		"another machine, without TLS":  {func(i *instances.Instance) { i.Console = "192.0.2.1:9325"; i.Certificate = "" }, "does not use TLS"},
		"no fleet key or older version": {func(i *instances.Instance) { i.Host = "" }, "no fleet key"},
	} {
		record := s.record()
		c.edit(&record)
		p, _ := newPeers(t, record)
		if _, err := p.status(t); err == nil || err.Status != http.StatusConflict || !strings.Contains(err.Message, c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
	if n := s.connections.Load(); n > 0 {
		t.Errorf("%d connections were made", n)
	}

	p, _ := newPeers(t, s.record())
	p.opts.Key = ""
	if _, err := p.status(t); err == nil || !strings.Contains(err.Message, "--fleet-key-file") {
		t.Errorf("without a fleet key: %v", err)
	}
	if err := p.Answer(t.Context(), "c", &api.Request{Pattern: api.GetStatus.Pattern}, new(api.Status)); err == nil {
		t.Error("an instance without a record answered")
	}
}

func TestRedirectsOfAPeerAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, false, false, answerStatus)
	s := serve(t, true, true, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/latest", http.StatusFound)
	})
	p, _ := newPeers(t, s.record())
	if _, err := p.status(t); err == nil || err.Status != http.StatusFound {
		t.Errorf("the answer is %v", err)
	}
	if n := elsewhere.connections.Load(); n > 0 {
		t.Errorf("%d connections to the target of the redirect", n)
	}
}

func TestSlowPeerIsNotAwaitedEachTime(t *testing.T) {
	t.Parallel()
	s := serve(t, true, true, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p, log := newPeers(t, s.record())
	for range 3 {
		if _, err := p.status(t); err == nil || err.Status != http.StatusBadGateway || !strings.Contains(err.Message, "cannot reach the instance at ") {
			t.Errorf("the answer is %v", err)
		}
	}
	if n := s.requests.Load(); n != 1 || strings.Count(log.String(), "instance does not respond") != 1 {
		t.Errorf("%d requests; the log is %s", n, log)
	}
	p.known["b"].retryAt = time.Now()
	p.status(t)
	if n := s.requests.Load(); n != 2 {
		t.Errorf("after a while, %d requests were made, want 2", n)
	}
}

func askAnother(t *testing.T, p *Peers) {
	t.Helper()
	p.known["b"].retryAt = time.Now().Add(-time.Hour)
	p.Answer(t.Context(), "c", &api.Request{Pattern: api.GetStatus.Pattern}, new(api.Status))
	if p.known["c"] == nil {
		t.Error("the other instance was not contacted")
	}
}

func TestFailuresOfASeldomAskedInstanceAreLoggedOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, true, true, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	b, c := s.record(), s.record()
	c.ID, c.Name = "c", "worker-3"
	p, log := newPeers(t, b, c)
	for range 2 {
		if _, err := p.status(t); err == nil {
			t.Error("the instance answered")
		}
		askAnother(t, p)
	}
	if n := strings.Count(log.String(), "instance=worker-2"); n != 1 || s.requests.Load() != 2 {
		t.Errorf("%d lines in the log after %d requests: %s", n, s.requests.Load(), log)
	}
}

func TestFailureAfterARefusalIsLogged(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	s := serve(t, true, true, func(w http.ResponseWriter, _ *http.Request) {
		if fails.Load() {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusNotFound)
	})
	p, log := newPeers(t, s.record())
	for _, fail := range []bool{true, false, true} {
		fails.Store(fail)
		if _, err := p.status(t); err == nil || (err.Status == http.StatusNotFound) == fail {
			t.Errorf("failing: %v; the answer is %v", fail, err)
		}
		p.known["b"].retryAt = time.Now()
	}
	if n := strings.Count(log.String(), "instance does not respond"); n != 2 {
		t.Errorf("%d lines in the log: %s", n, log)
	}
}

func TestUnusableResponsesAreNotReportedAsAbsent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer     http.HandlerFunc
		err, event string
	}{
		"401": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			"request refused by the instance at ", "instance refused the request"},
		"403": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
			"request refused by the instance at ", "instance refused the request"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
			"invalid response from the instance at ", "instance sent an invalid response"},
		"another type": {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"environment":1}`)) },
			"invalid response from the instance at ", "instance sent an invalid response"},
	} {
		s := serve(t, true, true, c.answer)
		p, log := newPeers(t, s.record())
		for range 2 {
			_, err := p.status(t)
			if err == nil || err.Status != http.StatusBadGateway || !strings.Contains(err.Message, c.err) {
				t.Errorf("%s: the answer is %v, want an error with %q", name, err, c.err)
			}
		}
		if n := s.requests.Load(); n != 1 || strings.Count(log.String(), c.event) != 1 {
			t.Errorf("%s: %d requests; the log is %s", name, n, log)
		}
	}
}

func TestInstanceIsNotAskedSoonAfterALongStreamOfItFailed(t *testing.T) {
	t.Parallel()
	failing := make(chan struct{})
	s := serve(t, false, true, func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("{}\n"))
		w.(http.Flusher).Flush()
		<-failing
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			err = errors.Join(conn.(*net.TCPConn).SetLinger(0), conn.Close()) // resets the connection
		}
		if err != nil {
			t.Error(err)
		}
	})
	b, c := s.record(), s.record()
	c.ID = "c"
	p, _ := newPeers(t, b, c)
	err := p.Follow(t.Context(), "b", &api.Request{Pattern: api.GetStatus.Pattern}, func([]byte) error {
		askAnother(t, p)
		close(failing)
		return nil
	})
	if err == nil {
		t.Error("the stream did not fail")
	}
	if _, err := p.status(t); err == nil || s.requests.Load() != 1 {
		t.Errorf("%v after %d requests: another one was sent at once", err, s.requests.Load())
	}
}

func TestStoppedInstancesAreForgotten(t *testing.T) {
	t.Parallel()
	s := serve(t, true, true, answerStatus)
	b, c := s.record(), s.record()
	c.ID = "c"
	p, _ := newPeers(t, b, c)
	if _, err := p.status(t); err != nil {
		t.Fatal(err)
	}
	p.opts.List = func(context.Context) ([]instances.Instance, error) { return []instances.Instance{c}, nil }
	askAnother(t, p)
	if p.known["b"] != nil || len(p.known) != 1 {
		t.Errorf("the known instances are %v", p.known)
	}
}

func TestAnswerOfAPeerIsBounded(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	s := serve(t, true, true, func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"environment":"`))
		for text := []byte(strings.Repeat("x", 1<<20)); sent.Load() < 100<<20; sent.Add(1 << 20) {
			if _, err := w.Write(text); err != nil {
				return
			}
		}
	})
	p, _ := newPeers(t, s.record())
	if _, err := p.status(t); err == nil {
		t.Error("an endless answer was read")
	}
	if n := sent.Load(); n > 30<<20 {
		t.Errorf("%d bytes were sent", n)
	}
}
