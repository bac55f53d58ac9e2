package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var contract = sync.OnceValue(func() *jsonschema.Compiler {
	text, err := json.Marshal(openAPI(New(nil).routes()))
	if err != nil {
		panic(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("openapi.json", document); err != nil {
		panic(err)
	}
	return c
})

var compiling sync.Mutex

func checkContract(t *testing.T, s *Server, r *http.Request, status int, body []byte) {
	t.Helper()
	_, pattern := s.mux.Handler(r)
	method, path, _ := strings.Cut(pattern, " ")
	if !strings.HasPrefix(path, "/api/v1/") || r.Method == http.MethodHead {
		return
	}
	escaped := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace
	at := "#/paths/" + escaped(path) + "/" + strings.ToLower(method) + "/responses/200/content/application~1json/schema"
	if status >= 300 {
		at = "#/components/responses/Refusal/content/application~1json/schema"
	}
	compiling.Lock()
	schema, err := contract().Compile("openapi.json" + at)
	compiling.Unlock()
	if err != nil {
		t.Errorf("%s is not in the document: %v", pattern, err)
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s answered %d: %v\n%s", pattern, status, err, body)
	}
}

func TestEveryRouteIsInTheDocument(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken})
	ids := map[string]string{}
	for _, rt := range s.routes() {
		if !strings.Contains(rt.pattern, " /api/v1/") {
			continue
		}
		if other := ids[operationID(rt.pattern)]; other != "" {
			t.Errorf("%s and %s have one operationId", rt.pattern, other)
		}
		ids[operationID(rt.pattern)] = rt.pattern
		if !strings.HasSuffix(rt.summary, ".") {
			t.Errorf("%s has the summary %q", rt.pattern, rt.summary)
		}
	}
	code, document := exchange(t, s, get("/api/v1/openapi.json"))
	text, err := json.Marshal(document)
	if code != 200 || err != nil || document["openapi"] != "3.1.0" {
		t.Errorf("answered %d %v", code, err)
	}
	named := document["components"].(map[string]any)["schemas"].(map[string]any)
	for _, ref := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllSubmatch(text, -1) {
		if named[string(ref[1])] == nil {
			t.Errorf("there is no schema %s", ref[1])
		}
	}
	compiling.Lock()
	defer compiling.Unlock()
	for name := range named {
		if _, err := contract().Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
	if props := named["Status"].(map[string]any)["properties"].(map[string]any); props["workers"] == nil {
		t.Errorf("Status has the properties %v", props)
	}
}

// A type has one schema, whose required fields depend on whether it is in requests or responses.
func TestNoSchemaIsInBothRequestsAndResponses(t *testing.T) {
	t.Parallel()
	gives, takes := schemas{named: map[string]object{}}, schemas{named: map[string]object{}, optional: true}
	for _, rt := range New(nil).routes() {
		if !strings.Contains(rt.pattern, " /api/v1/") {
			continue
		}
		gives.schemaOf(rt.gives)
		if rt.method() == http.MethodPost {
			takes.schemaOf(rt.takes)
		}
	}
	if len(gives.named) == 0 || len(takes.named) == 0 {
		t.Fatalf("%d schemas in responses, %d in requests", len(gives.named), len(takes.named))
	}
	for name, schema := range takes.named {
		if other, both := gives.named[name]; both && !reflect.DeepEqual(schema, other) {
			t.Errorf("%s is in requests and responses", name)
		}
	}
}
