package console

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"tendril/api"
)

var update = flag.Bool("update", false, "rewrite the golden file of the OpenAPI document")

func TestPagesAndRequestsMayDoTheSame(t *testing.T) {
	t.Parallel()
	s := New(acting(func() {}))
	reader, actor := signIn(t, s, api.ScopeRead), signIn(t, s, api.ScopeAct)
	keyless := func(r *http.Request) { actor.send(r); r.Header.Del(api.SessionKeyHeader) }
	callers := map[string]func(*http.Request){
		"no one":              func(*http.Request) {},
		"the owner":           func(r *http.Request) { with(r, "Authorization", "Bearer "+testToken) },
		"a wrong token":       func(r *http.Request) { with(r, "Authorization", "Bearer wrong") },
		"a reader":            reader.send,
		"an actor":            actor.send,
		"an actor, no key":    keyless,
		"a sender in between": func(r *http.Request) { actor.send(r); r.RemoteAddr = "192.0.2.9:77" },
	}
	for _, readOnly := range []bool{false, true} {
		s.opts.Access.ReadOnly = readOnly
		for who, as := range callers {
			for _, rt := range s.routes() {
				if !strings.Contains(rt.pattern, " /api/v1/") {
					continue
				}
				method, path := example(rt.pattern)
				var payload []byte
				var body any
				if method == http.MethodPost {
					payload = []byte("{}")
					body = reflect.Zero(rt.takes).Interface()
				}
				r := httptest.NewRequest(method, path, bytes.NewReader(payload))
				r.Host = "127.0.0.1:9325"
				r.Header.Set("Content-Type", "application/json")
				as(r)
				want := answered(t, s, r)

				page := get("/page")
				page.Host = r.Host
				as(page)
				names := strings.Fields(strings.NewReplacer("name", "jobs", "id", "m1").Replace(
					strings.Join(rt.wildcards(), " ")))
				into := reflect.New(rt.gives).Interface()
				err := inProcess{s, page}.Answer(t.Context(), &api.Request{Pattern: rt.pattern, Names: names, Body: body}, into)
				var status int
				if err != nil {
					status = err.(*api.Error).Status
				} else {
					status = statusOf(reflect.ValueOf(into).Elem().Interface())
				}
				if status != want {
					t.Errorf("%s by %s, read-only %t: a request gets %d, a page %d (%v)", rt.pattern, who, readOnly, want, status, err)
				}
			}
		}
	}
}

// Clients are generated from the document, so its changes must be deliberate.
func TestDocumentIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(openAPI(New(nil).routes()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const golden = "testdata/openapi.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the document differs from %s (%v): compare them after go test ./internal/console -update", golden, err)
	}
}
