package console

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"strings"
	"testing"
	"time"

	"tendril/api"
	"tendril/internal/host/proof"
	"tendril/internal/instances"
	"tendril/internal/observe/eventlog"
	"tendril/internal/peers"
)

const fleetKey = instances.FleetKey("fleet-key-0123456789")

func instance(t *testing.T, id string, other *instances.Record, encrypted bool, opts *Options) (*api.Client, *httptest.Server) {
	t.Helper()
	list := func(context.Context) (all []instances.Instance, err error) {
		if other != nil {
			all = append(all, instances.Instance{Record: *other})
		}
		return all, nil
	}
	p := peers.New(peers.Options{Environment: "shop", ID: id, Host: "here", Key: fleetKey, List: list,
		Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(p.Close)
	opts.Peers = p
	opts.Token = api.NewToken()
	s := New(opts)
	t.Cleanup(s.Close)
	srv := httptest.NewUnstartedServer(s)
	srv.Config = HTTPServer(s)
	if encrypted {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)

	dir := t.TempDir()
	claim(t, dir)
	file := &api.Instance{PID: os.Getpid(), Environment: "shop", Console: srv.Listener.Addr().String()}
	if encrypted {
		file.ConsoleCertificate = api.CertificateFingerprint(srv.Certificate().Raw)
	}
	if err := errors.Join(file.Write(dir), api.WriteToken(dir, opts.Token)); err != nil {
		t.Fatal(err)
	}
	c, err := api.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	dialled.Store(c, dir)
	return c, srv
}

func recordOf(srv *httptest.Server, id string) *instances.Record {
	r := &instances.Record{ID: id, Name: "worker-" + id, Host: "here", Console: srv.Listener.Addr().String()}
	if srv.TLS != nil {
		r.Certificate = api.CertificateFingerprint(srv.Certificate().Raw)
	}
	return r
}

func inState(state string) func() api.Status {
	return func() api.Status { return api.Status{State: state} }
}

func TestConsoleReadsFromAnotherInstance(t *testing.T) {
	t.Parallel()
	for name, encrypted := range map[string]bool{"TLS": true, "loopback": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := eventlog.NewLines()
			lines.Add(eventlog.Line{Process: "web", Text: "from b"})
			_, b := instance(t, "b", nil, encrypted, &Options{Status: inState("draining"), History: History{Lines: lines}})
			a, _ := instance(t, "a", recordOf(b, "b"), encrypted, &Options{Status: inState("running"), History: History{Lines: eventlog.NewLines()}})

			for id, want := range map[string]string{"": "running", "a": "running", "b": "draining"} {
				if st, err := a.On(id).Status(t.Context()); err != nil || st.State != want {
					t.Errorf("the status of %q is %q, %v", id, st.State, err)
				}
			}
			if all, err := a.On("b").Logs(t.Context(), api.LineFilter{Match: "from"}); err != nil || len(all) != 1 || all[0].Text != "from b" {
				t.Errorf("the lines are %v, %v", all, err)
			}
			if _, err := a.On("b").Logs(t.Context(), api.LineFilter{Limit: 5000}); err == nil || !strings.Contains(err.Error(), "out of range") {
				t.Errorf("an invalid request: %v", err)
			}
			if _, err := a.On("c").Status(t.Context()); err == nil || !strings.Contains(err.Error(), "not found") {
				t.Errorf("an unknown instance: %v", err)
			}

			followed := errors.New("followed")
			first := lines.LastID()
			err := a.On("b").FollowLogs(t.Context(), api.LineFilter{After: first - 1}, func(l eventlog.Line) error {
				if l.ID == first {
					lines.Add(eventlog.Line{Process: "web", Text: "live"})
					return nil
				}
				if l.Text != "live" {
					t.Errorf("the line is %+v", l)
				}
				return followed
			})
			if !errors.Is(err, followed) {
				t.Errorf("the stream ended: %v", err)
			}
		})
	}
}

func TestCallersWhoMayReadFromAnotherInstance(t *testing.T) {
	t.Parallel()
	asked := 0
	_, b := instance(t, "b", nil, false, &Options{Status: func() api.Status { asked++; return api.Status{} }})
	opts := acting(func() {})
	a, srv := instance(t, "a", recordOf(b, "b"), false, opts)
	resp, err := http.Get(srv.URL + "/api/v1/status?instance=b")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || asked > 0 {
		t.Errorf("an anonymous caller got %d; the other instance was asked %d times", resp.StatusCode, asked)
	}
	for _, path := range []string{"/api/v1/environment?instance=b", "/api/v1/caller?instance=b", "/api/v1/config?instance=b"} {
		if err := sendTo(t, a, srv, path); err == nil || !strings.Contains(err.Error(), "cannot be read from another instance") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func sendTo(t *testing.T, c *api.Client, srv *httptest.Server, path string) error {
	t.Helper()
	token, err := api.ReadToken(dataDirOf(c))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("%d %s", resp.StatusCode, text)
}

func TestPeersMayOnlyReadTheState(t *testing.T) {
	t.Parallel()
	opts := acting(func() { t.Error("a peer performed an action") })
	_, b := instance(t, "b", nil, true, opts)
	s := b.Config.Handler.(*Server)
	transport := proof.Require(&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, fleetKey.PeerSecrets("shop", "b")[0])
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	send := func(method, path string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, b.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, rt := range s.routes() {
		method, path := example(rt.pattern)
		if rt.kind.isHook() && method == http.MethodHead {
			continue
		}
		if code := send(method, path); (code == http.StatusForbidden) == rt.perInstance {
			t.Errorf("%s answered %d", rt.pattern, code)
		}
	}
	if code := send("GET", "/api/v1/status?instance=c"); code != http.StatusBadRequest {
		t.Errorf("a request for a third instance answered %d", code)
	}
}

// A challenge and its proof are bound to their connection with TLS, otherwise to one run of the instance.
func TestRecordedProofsAreUseless(t *testing.T) {
	t.Parallel()
	_, b := instance(t, "b", nil, true, &Options{History: History{Lines: eventlog.NewLines()}})
	var recorded strings.Builder
	first := proof.Require(&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, to)
	}}, fleetKey.PeerSecrets("shop", "b")[0])
	defer first.CloseIdleConnections()

	inner := b.Config.Handler
	b.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := httputil.DumpRequest(r, false)
		recorded.Write(text)
		inner.ServeHTTP(w, r)
	})
	resp, err := (&http.Client{Transport: first}).Get(b.URL + "/api/v1/logs")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the genuine request answered %d", resp.StatusCode)
	}

	conn, err := tls.Dial("tcp", b.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, recorded.String()); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	for _, want := range []int{http.StatusForbidden, http.StatusUnauthorized} {
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, answer.Body)
		if answer.StatusCode != want {
			t.Errorf("a replayed request answered %d, want %d", answer.StatusCode, want)
		}
	}
}

func TestOutcomeOfAMessageIsAskedFromEachInstance(t *testing.T) {
	t.Parallel()
	handled := &Deliveries{}
	handled.Record(api.Delivery{MessageID: "m1", Queue: "jobs", Outcome: "done", At: time.Now(), Attempt: 1})
	_, b := instance(t, "b", nil, false, &Options{Deliveries: handled, Status: inState("running")})
	all := api.Instances{Instances: []api.KnownInstance{{ID: "a", Name: "worker-a", This: true}, {ID: "b", Name: "worker-b"},
		{ID: "c", Name: "worker-c", NoDetails: "its console is off"}}}
	a, _ := instance(t, "a", recordOf(b, "b"), false, &Options{Deliveries: &Deliveries{}, Status: inState("running"),
		Views: Views{Instances: func() api.Instances { return all }}})
	for id, want := range map[string]string{"m1": "completed by jobs at", "m2": "worker-c was not searched: its console is off"} {
		_, err := a.FindMessage(t.Context(), id)
		if e := (*api.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Message+e.Hint, want) {
			t.Errorf("%s: %v, want %q", id, err, want)
		}
	}
}
