package console

import (
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"strings"
	"time"

	"tendril/api"
)

type object = map[string]any

func openAPI(routes []route) any {
	s := schemas{named: map[string]object{}}
	paths := map[string]object{}
	for _, rt := range routes {
		_, path, _ := strings.Cut(rt.pattern, " ")
		if !strings.HasPrefix(path, "/api/v1/") {
			continue
		}
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(rt.method())] = s.operation(&rt)
	}

	refusal := s.schemaOf(reflect.TypeFor[api.Error]())
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "tendril", "version": "1",
			"description": "The console of a worker environment. An error says what is wrong and how to fix it."},
		"paths": paths,
		"components": object{
			"schemas":   s.named,
			"responses": object{"Refusal": object{"description": "Refused.", "content": content(refusal)}},
			"securitySchemes": object{
				"token": object{"type": "http", "scheme": "bearer",
					"description": "The owner's token, or one created with 'tendril tokens create'."},
				"session": object{"type": "apiKey", "in": "cookie", "name": "tendril-9325",
					"description": "The session opened by the link of 'tendril open'. The cookie is named tendril-PORT, or " +
						"tendril if the URL has no port; over HTTPS, the name starts with __Host-. Actions also carry the " +
						"session's key in the header " + api.SessionKeyHeader + "."},
			},
		},
	}
}

func (s schemas) operation(rt *route) object {
	op := object{
		"summary":     rt.summary,
		"operationId": operationID(rt.pattern),
		"responses": object{
			"200":     object{"description": "Done.", "content": content(s.schemaOf(rt.gives))},
			"default": object{"$ref": "#/components/responses/Refusal"},
		},
	}

	parameters := []object{}
	for _, name := range rt.wildcards() {
		parameters = append(parameters, object{"name": name, "in": "path", "required": true,
			"schema": object{"type": "string"}})
	}

	for _, name := range strings.Fields(rt.query) {
		parameters = append(parameters, object{"name": name, "in": "query", "schema": object{"type": "string"}})
	}

	if len(parameters) > 0 {
		op["parameters"] = parameters
	}

	if rt.method() == http.MethodPost {
		taken := schemas{named: s.named, optional: true}
		op["requestBody"] = object{"content": content(taken.schemaOf(rt.takes))}
	}

	switch scope := rt.kind.scope(); scope {
	case "":
		op["security"] = []object{{}} // public; with the scope read, responses contain more
	case scopeOwn:
		op["security"] = []object{{"token": []string{scope}}}
	default:
		op["security"] = []object{{"token": []string{scope}}, {"session": []string{scope}}}
	}

	return op
}

func operationID(pattern string) string {
	method, path, _ := strings.Cut(pattern, " ")
	id := strings.ToLower(method)
	for _, word := range strings.FieldsFunc(strings.TrimPrefix(path, "/api/v1/"), func(r rune) bool {
		return strings.ContainsRune("/{}.", r)
	}) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

func content(schema object) object {
	return object{"application/json": object{"schema": schema}}
}

type schemas struct {
	named    map[string]object // each type has one schema, so no type may be in both requests and responses
	optional bool              // no field is required, as in requests
}

func (s schemas) schemaOf(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[api.Attributes]():
		return object{"type": "object", "description": `By name: "text", 3, {"type":"Number","value":"3"} or ` +
			`{"type":"Binary","base64":"AAE="}.`}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return object{}
	}

	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Pointer:
		return s.schemaOf(t.Elem())
	case reflect.Slice, reflect.Array:
		return object{"type": []string{"array", "null"}, "items": s.schemaOf(t.Elem())}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.schemaOf(t.Elem())}
	case reflect.Struct:
		return s.structSchema(t)
	}

	return object{}
}

// Generated clients depend on these names, which differ from those derived from the types.
var componentNames = map[reflect.Type]string{
	reflect.TypeFor[api.Selection]():   "BrokerFilter",
	reflect.TypeFor[api.Ledger]():      "BrokerLedger",
	reflect.TypeFor[api.ReasonGroup](): "ReasonGroup",
	reflect.TypeFor[api.MoveRequest](): "Selection",
}

func componentName(t reflect.Type) string {
	if name := componentNames[t]; name != "" {
		return name
	}
	pkg := path.Base(t.PkgPath())
	if pkg == "api" {
		return t.Name()
	}
	return strings.ToUpper(pkg[:1]) + pkg[1:] + t.Name()
}

func (s schemas) structSchema(t reflect.Type) object {
	name := componentName(t)
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, ok := s.named[name]; ok {
		return ref
	}

	schema := object{"type": "object"}
	s.named[name] = schema // added before its fields, because types may be recursive
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		field, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || field == "-" || f.Anonymous && field == "" {
			continue
		}
		if field == "" {
			field = f.Name
		}
		properties[field] = s.schemaOf(f.Type)
		if !s.optional && !strings.Contains(rest, "omit") {
			required = append(required, field)
		}
	}

	schema["properties"] = properties
	if len(required) > 0 {
		schema["required"] = required
	}

	return ref
}

func (s *Server) document(*call) (any, error) { return openAPI(s.routes()), nil }
