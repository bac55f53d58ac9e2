package console

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"tendril/api"
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

// operations describe every route of the API. Tests hold them to the table of routes, and to what the routes answer.
var operations = map[string]operation{
	"GET /api/v1/openapi.json": {"This document.", "", nil, nil},
	"GET /api/v1/caller":       {"Who the caller is, and what it may do.", "", nil, api.Caller{}},
	"POST /api/v1/login":       {"Make a link that lets one browser in.", "", api.LoginRequest{}, api.LoginLink{}},
	"GET /api/v1/status":       {"Everything the environment says about itself.", "", nil, api.Status{}},
	"GET /api/v1/environment":  {"What the environment consists of, with all settings.", "", nil, api.Description{}},
	"GET /api/v1/doctor": {"What is wrong with settings, machine and servers, with remedies.", "", nil,
		doctor.Examination{}},
	"GET /api/v1/health":                {"Status, colour and causes.", "", nil, health.Report{}},
	"GET /api/v1/config":                {"Every option in force, and where it can change.", "", nil, api.Configuration{}},
	"POST /api/v1/config/preview":       {"What a change of settings would do.", "", api.SettingsChange{}, api.SettingsPreview{}},
	"POST /api/v1/config":               {"Change the settings file.", "", api.SettingsChange{}, api.SettingsPreview{}},
	"GET /api/v1/scale":                 {"What waits, and the size wanted.", "", nil, autoscale.Scale{}},
	"GET /api/v1/scale/decisions":       {"The last decisions about the size.", "", nil, api.ScaleDecisions{}},
	"GET /api/v1/instances":             {"The instances that are known.", "", nil, api.Instances{}},
	"GET /api/v1/versions":              {"The versions of the app, newest first.", "", nil, api.VersionList{}},
	"GET /api/v1/series":                {"Curves of the last minutes or hours.", "range", nil, series.Curves{}},
	"GET /api/v1/deliveries":            {"The most recent deliveries, newest first.", "limit", nil, api.DeliveryList{}},
	"GET /api/v1/messages/{id}/outcome": {"The latest delivery of a message, waited for.", "wait", nil, api.Delivery{}},

	"GET /api/v1/messages/{id}/exchange":     {"The latest request, and its answer.", "body", nil, api.Exchange{}},
	"POST /api/v1/exchanges":                 {"Record exchanges for a while.", "", api.RecordRequest{}, api.Recording{}},
	"DELETE /api/v1/queues/{name}":           {"Delete a queue with its messages.", "confirm", nil, api.Count{}},
	"POST /api/v1/queues/{name}/receive":     {"Take messages as a consumer.", "", api.ReceiveRequest{}, api.ReceivedList{}},
	"POST /api/v1/queues/{name}/acknowledge": {"Delete received messages.", "", api.Receipts{}, api.Count{}},
	"POST /api/v1/deploy/abort":              {"End the deployment in progress.", "", api.NoBody{}, api.Deployment{}},

	"GET /api/v1/queues":        {"The embedded queues.", "", nil, api.QueueList{}},
	"POST /api/v1/queues":       {"Create a queue.", "", api.Creation{}, api.Created{}},
	"GET /api/v1/queues/{name}": {"One queue with its attributes.", "", nil, api.Queue{}},
	"GET /api/v1/queues/{name}/messages": {"One page of messages, oldest first.",
		selectionWords + " state after limit body", nil, api.MessagePage{}},
	"GET /api/v1/queues/{name}/count": {"How many messages match.",
		selectionWords + " wait body", nil, api.Total{}},
	"POST /api/v1/queues/{name}/messages/{id}/retry": {"Make one message visible at once.", "", api.NoBody{}, api.Placed{}},
	"POST /api/v1/queues/{name}/messages/{id}/delay": {"Hide one message for a time from now.", "", api.DelayRequest{},
		api.Placed{}},
	"POST /api/v1/queues/{name}/messages/{id}/edit": {"Send one message in the place of another.", "", api.EditRequest{},
		api.SendAnswer{}},
	"GET /api/v1/queues/{name}/reasons":          {"Why the messages failed, grouped.", "", nil, api.ReasonList{}},
	"POST /api/v1/queues/{name}/messages":        {"Send up to ten messages.", "", api.SendRequest{}, api.SendAnswer{}},
	"GET /api/v1/queues/{name}/messages/{id}":    {"One message.", "body", nil, api.Message{}},
	"DELETE /api/v1/queues/{name}/messages/{id}": {"Delete one message.", "", nil, api.Count{}},
	"POST /api/v1/queues/{name}/pause":           {"Stop receiving from a queue.", "", api.Reason{}, api.Paused{}},
	"POST /api/v1/queues/{name}/resume":          {"Receive from a queue again.", "", api.NoBody{}, api.Paused{}},
	"POST /api/v1/queues/{name}/purge":           {"Remove all messages of a queue.", "", api.Confirmation{}, api.Count{}},
	"POST /api/v1/queues/{name}/move":            {"Move messages to another queue.", "", api.MoveRequest{}, api.Count{}},
	"POST /api/v1/queues/{name}/delete":          {"Delete messages, or start to.", "", api.Deletion{}, api.Deleted{}},
	"POST /api/v1/queues/{name}/redrive":         {"Start to move dead letters back.", "", api.RedriveRequest{}, api.MoveTask{}},
	"GET /api/v1/queues/{name}/redrive":          {"The latest task of a dead-letter queue.", "", nil, api.MoveTask{}},
	"DELETE /api/v1/queues/{name}/redrive":       {"Cancel the running task.", "", nil, api.MoveTask{}},

	"GET /api/v1/tasks":                {"The periodic tasks, and who leads.", "", nil, api.TasksStatus{}},
	"GET /api/v1/tasks/{name}/history": {"The runs of a task, newest first.", "limit", nil, api.RunList{}},
	"GET /api/v1/history":              {"The runs of all tasks, newest first.", "limit", nil, api.RunList{}},
	"POST /api/v1/tasks/{name}/run":    {"Enqueue one run of a task.", "", api.NoBody{}, api.TaskRun{}},
	"POST /api/v1/tasks/{name}/pause":  {"Leave out the runs of a task.", "", api.Reason{}, api.TaskPaused{}},
	"POST /api/v1/tasks/{name}/resume": {"Undo the pause of a task.", "", api.NoBody{}, api.TaskPaused{}},

	"POST /api/v1/deploy":                   {"Replace the version of the app.", "", api.DeployRequest{}, api.DeployResult{}},
	"POST /api/v1/processes/{name}/restart": {"Restart one process of the app.", "", api.NoBody{}, api.RestartedProcess{}},
	"POST /api/v1/rollback":                 {"Go back to a version of the app.", "", api.RollbackRequest{}, api.DeployResult{}},
	"POST /api/v1/reload":                   {"Put in force what changed in files.", "", api.NoBody{}, api.ReloadResult{}},
	"POST /api/v1/quiet":                    {"Stop receiving from every queue.", "", api.Reason{}, api.Paused{}},
	"POST /api/v1/resume":                   {"Receive from every queue again.", "", api.NoBody{}, api.Paused{}},
	"POST /api/v1/drain":                    {"Drain and stop the environment.", "", api.DrainRequest{}, api.Drained{}},
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
	refusal := s.of(reflect.TypeFor[api.Error]())
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
						"carry its key too, in the header " + api.SessionKeyHeader + "."},
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
	if pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]; pkg != "api" {
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
