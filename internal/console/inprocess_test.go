package console_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
	"tendril/internal/console"
)

const token = "the-token"

func TestInProcessClientIsWhoeverSentTheRequest(t *testing.T) {
	t.Parallel()
	s := console.New(&console.Options{Token: token, Access: console.Access{Hosts: []string{"console.internal"}}})
	from := httptest.NewRequest(http.MethodGet, "/page", nil)
	from.Host = "console.internal:9325"
	from.RemoteAddr = "192.0.2.9:77"
	ask := func() api.Caller {
		t.Helper()
		c := console.NewInProcessClient(s, from)
		defer c.Close()
		got, err := c.Caller(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if st, err := c.Status(t.Context()); err != nil || st.Version != "" {
			t.Errorf("%v %v", st, err)
		}
		return got
	}
	if got := ask(); got.Who != "" {
		t.Errorf("nobody is %v", got)
	}
	_, err := console.NewInProcessClient(s, from).Describe(t.Context())
	var refusal *api.Error
	if !errors.As(err, &refusal) || refusal.Status != 401 || !strings.Contains(refusal.Hint, "tendril open") {
		t.Errorf("refused with %v", err)
	}
	link := httptest.NewRequest(http.MethodGet, s.Login(api.ScopeRead), nil)
	link.Host = from.Host
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, link)
	from.AddCookie(rec.Result().Cookies()[0])
	if diff := cmp.Diff(api.Caller{Who: "session 1", Scopes: []string{api.ScopeRead}}, ask()); diff != "" {
		t.Error(diff)
	}
	from.Header.Set("Authorization", "Bearer "+token)
	if got := ask(); got.Who != "owner" {
		t.Errorf("the owner is %v", got)
	}
	from.Host = "evil.test"
	_, err = console.NewInProcessClient(s, from).Caller(t.Context())
	if !errors.As(err, &refusal) || refusal.Status != 403 {
		t.Errorf("another host: %v", err)
	}
}
