package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"tendril/api"
)

func TestEveryAnswerHasTheIDOfItsRequest(t *testing.T) {
	t.Parallel()
	var s *Server
	inside := ""
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := NewInProcessClient(s, r).Pause(r.Context(), "jobs", api.Reason{})
		refused, _ := err.(*api.Error)
		inside = refused.RequestID
	})
	var acts []Act
	s = New(&Options{Token: "t", Handlers: Handlers{Pages: pages},
		Access: Access{Audit: func(a Act) { acts = append(acts, a) }}})
	ids := map[string]bool{}
	for _, path := range []string{"/api/v1/status", "/livez", "/api/v1/nothing", "/api/v1/config", "/page"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9325"+path, http.NoBody)
		r.Header.Set(api.RequestIDHeader, "chosen-by-the-sender")
		s.ServeHTTP(w, r)
		id := w.Header().Get(api.RequestIDHeader)
		if len(id) != 12 || ids[id] {
			t.Errorf("%s: the id is %q, before it %v", path, id, ids)
		}
		ids[id] = true
		refused := api.Error{}
		if err := json.Unmarshal(w.Body.Bytes(), &refused); path != "/page" && err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if w.Code >= http.StatusBadRequest && refused.RequestID != id {
			t.Errorf("%s: the refusal has the id %q, the header %q", path, refused.RequestID, id)
		}
		if path == "/page" && (inside != id || len(acts) != 1 || acts[0].RequestID != id) {
			t.Errorf("the page has the id %q, what it asked for %q, the record %+v", id, inside, acts)
		}
	}
}
