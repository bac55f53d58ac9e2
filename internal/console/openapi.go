package console

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/observe/doctor"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
)

// operation describes a route of the API for its document.
type operation struct {
	summary string
	// query are the names of the parameters, with blanks between.
	query string
	// takes and gives are values of the types of body and answer; nil for no body, and for any JSON.
	takes, gives any
}

// noBody is the body of an act without parameters.
type noBody struct{}

// operations describe every route of the API. Tests hold them to the table of routes, and to what the routes answer.
var operations = map[string]operation{
	"GET /api/v1/openapi.json": {"This document.", "", nil, nil},
	"GET /api/v1/caller":       {"Who the caller is, and what it may do.", "", nil, Caller{}},
	"POST /api/v1/login":       {"Make a link that lets one browser in.", "", loginRequest{}, loginLink{}},
	"GET /api/v1/status":       {"Everything the environment says about itself.", "", nil, Status{}},
	"GET /api/v1/environment":  {"What the environment consists of, with all settings.", "", nil, Description{}},
	"GET /api/v1/doctor": {"What is wrong with settings, machine and servers, with remedies.", "", nil,
		doctor.Examination{}},
	"GET /api/v1/health":                {"Status, colour and causes.", "", nil, health.Report{}},
	"GET /api/v1/config":                {"Every option in force, and where it can change.", "", nil, Configuration{}},
	"POST /api/v1/config/preview":       {"What a change of settings would do.", "", SettingsChange{}, SettingsPreview{}},
	"POST /api/v1/config":               {"Change the settings file.", "", SettingsChange{}, SettingsPreview{}},
	"GET /api/v1/scale":                 {"What waits, and the size wanted.", "", nil, autoscale.Scale{}},
	"GET /api/v1/scale/decisions":       {"The last decisions about the size.", "", nil, ScaleDecisions{}},
	"GET /api/v1/instances":             {"The instances that are known.", "", nil, Instances{}},
	"GET /api/v1/versions":              {"The versions of the app, newest first.", "", nil, versionList{}},
	"GET /api/v1/series":                {"Curves of the last minutes or hours.", "range", nil, series.Curves{}},
	"GET /api/v1/deliveries":            {"The most recent deliveries, newest first.", "limit", nil, deliveryList{}},
	"GET /api/v1/messages/{id}/outcome": {"The latest delivery of a message, waited for.", "wait", nil, Delivery{}},

	"GET /api/v1/messages/{id}/exchange":     {"The latest request, and its answer.", "body", nil, Exchange{}},
	"POST /api/v1/exchanges":                 {"Record exchanges for a while.", "", recordRequest{}, recording{}},
	"DELETE /api/v1/queues/{name}":           {"Delete a queue with its messages.", "confirm", nil, count{}},
	"POST /api/v1/queues/{name}/receive":     {"Take messages as a consumer.", "", ReceiveRequest{}, receivedList{}},
	"POST /api/v1/queues/{name}/acknowledge": {"Delete received messages.", "", receipts{}, count{}},
	"POST /api/v1/deploy/abort":              {"End the deployment in progress.", "", noBody{}, Deployment{}},

	"GET /api/v1/queues":        {"The embedded queues.", "", nil, queueList{}},
	"POST /api/v1/queues":       {"Create a queue.", "", creation{}, created{}},
	"GET /api/v1/queues/{name}": {"One queue with its attributes.", "", nil, Queue{}},
	"GET /api/v1/queues/{name}/messages": {"One page of messages, oldest first.",
		selectionWords + " state after limit body", nil, messagePage{}},
	"GET /api/v1/queues/{name}/count": {"How many messages match.",
		selectionWords + " wait body", nil, Total{}},
	"POST /api/v1/queues/{name}/messages/{id}/retry": {"Make one message visible at once.", "", noBody{}, Placed{}},
	"POST /api/v1/queues/{name}/messages/{id}/delay": {"Hide one message for a time from now.", "", delayRequest{},
		Placed{}},
	"POST /api/v1/queues/{name}/messages/{id}/edit": {"Send one message in the place of another.", "", editRequest{},
		sendAnswer{}},
	"GET /api/v1/queues/{name}/reasons":          {"Why the messages failed, grouped.", "", nil, reasonList{}},
	"POST /api/v1/queues/{name}/messages":        {"Send up to ten messages.", "", sendRequest{}, sendAnswer{}},
	"GET /api/v1/queues/{name}/messages/{id}":    {"One message.", "body", nil, Message{}},
	"DELETE /api/v1/queues/{name}/messages/{id}": {"Delete one message.", "", nil, count{}},
	"POST /api/v1/queues/{name}/pause":           {"Stop receiving from a queue.", "", reason{}, paused{}},
	"POST /api/v1/queues/{name}/resume":          {"Receive from a queue again.", "", noBody{}, paused{}},
	"POST /api/v1/queues/{name}/purge":           {"Remove all messages of a queue.", "", confirmation{}, count{}},
	"POST /api/v1/queues/{name}/move":            {"Move messages to another queue.", "", selection{}, count{}},
	"POST /api/v1/queues/{name}/delete":          {"Delete messages, or start to.", "", deletion{}, deleted{}},
	"POST /api/v1/queues/{name}/redrive":         {"Start to move dead letters back.", "", redriveRequest{}, MoveTask{}},
	"GET /api/v1/queues/{name}/redrive":          {"The latest task of a dead-letter queue.", "", nil, MoveTask{}},
	"DELETE /api/v1/queues/{name}/redrive":       {"Cancel the running task.", "", nil, MoveTask{}},

	"GET /api/v1/tasks":                {"The periodic tasks, and who leads.", "", nil, TasksStatus{}},
	"GET /api/v1/tasks/{name}/history": {"The runs of a task, newest first.", "limit", nil, runList{}},
	"GET /api/v1/history":              {"The runs of all tasks, newest first.", "limit", nil, runList{}},
	"POST /api/v1/tasks/{name}/run":    {"Enqueue one run of a task.", "", noBody{}, TaskRun{}},
	"POST /api/v1/tasks/{name}/pause":  {"Leave out the runs of a task.", "", reason{}, taskPaused{}},
	"POST /api/v1/tasks/{name}/resume": {"Undo the pause of a task.", "", noBody{}, taskPaused{}},

	"POST /api/v1/deploy":                   {"Replace the version of the app.", "", deployRequest{}, DeployResult{}},
	"POST /api/v1/processes/{name}/restart": {"Restart one process of the app.", "", noBody{}, restartedProcess{}},
	"POST /api/v1/rollback":                 {"Go back to a version of the app.", "", rollbackRequest{}, DeployResult{}},
	"POST /api/v1/reload":                   {"Put in force what changed in files.", "", noBody{}, ReloadResult{}},
	"POST /api/v1/quiet":                    {"Stop receiving from every queue.", "", reason{}, paused{}},
	"POST /api/v1/resume":                   {"Receive from every queue again.", "", noBody{}, paused{}},
	"POST /api/v1/drain":                    {"Drain and stop the environment.", "", drainRequest{}, drained{}},
}

// selectionWords are the parameters that selectionOf reads.
const selectionWords = "match attribute reason dead_since dead_until through"

// object is one of JSON.
type object = map[string]any

// openAPI is the document of the routes of the API.
func openAPI(routes []route) any {
	s := schemas{named: map[string]object{}}
	paths := map[string]object{}
	for _, rt := range routes {
		method, path, _ := strings.Cut(rt.pattern, " ")
		if !strings.HasPrefix(path, "/api/v1/") {
			continue
		}
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(method)] = s.operation(rt, path)
	}
	refusal := s.of(reflect.TypeFor[Error]())
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "tendril", "version": "1",
			"description": "The console of a worker environment. A refusal says what is wrong, and what to do instead."},
		"paths": paths,
		"components": object{
			"schemas":   s.named,
			"responses": object{"Refusal": object{"description": "Refused.", "content": content(refusal)}},
			"securitySchemes": object{
				"token": object{"type": "http", "scheme": "bearer",
					"description": "The owner's token, or one that 'tendril tokens create' made."},
				"session": object{"type": "apiKey", "in": "cookie", "name": "tendril-9325",
					"description": "The session that the link of 'tendril open' opens. The name has the console's port. Acts " +
						"carry its key too, in the header " + SessionKeyHeader + "."},
			},
		},
	}
}

// operation describes one route.
func (s schemas) operation(rt route, path string) object {
	described := operations[rt.pattern]
	answered := object{}
	if described.gives != nil {
		answered = s.of(reflect.TypeOf(described.gives))
	}
	op := object{
		"summary":     described.summary,
		"operationId": operationID(rt.pattern),
		"responses": object{
			"200":     object{"description": "Done.", "content": content(answered)},
			"default": object{"$ref": "#/components/responses/Refusal"},
		},
	}
	parameters := []object{}
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "{") {
			parameters = append(parameters, object{"name": strings.Trim(part, "{}"), "in": "path", "required": true,
				"schema": object{"type": "string"}})
		}
	}
	for _, name := range strings.Fields(described.query) {
		parameters = append(parameters, object{"name": name, "in": "query", "schema": object{"type": "string"}})
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if described.takes != nil {
		taken := schemas{named: s.named, optional: true}
		op["requestBody"] = object{"content": content(taken.of(reflect.TypeOf(described.takes)))}
	}
	switch scope := rt.kind.scope(); scope {
	case "":
		op["security"] = []object{{}} // nobody is asked for; those with the scope read see more
	case scopeOwn:
		op["security"] = []object{{"token": []string{scope}}}
	default:
		op["security"] = []object{{"token": []string{scope}}, {"session": []string{scope}}}
	}
	return op
}

// operationID is a name for programs: the method and the words of the path.
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

// schemas are the schemas of named types, by their names.
type schemas struct {
	named map[string]object
	// optional is whether a field may be missing, as in a request.
	optional bool
}

// of returns the schema of a type as encoding/json writes it, or a reference to it.
func (s schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[Attributes]():
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
		return s.of(t.Elem())
	case reflect.Slice, reflect.Array:
		return object{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.ofStruct(t)
	}
	return object{}
}

// ofStruct enters the schema of a struct, and returns a reference to it.
func (s schemas) ofStruct(t reflect.Type) object {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]; pkg != "console" {
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, ok := s.named[name]; ok {
		return ref
	}
	schema := object{"type": "object"}
	s.named[name] = schema // before its fields, which may refer to it
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		field, rest, tagged := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || field == "-" || f.Anonymous && !tagged && field == "" {
			continue
		}
		if field == "" {
			field = f.Name
		}
		properties[field] = s.of(f.Type)
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

func (s *Server) document(*http.Request) (any, error) { return openAPI(s.routes()), nil }
