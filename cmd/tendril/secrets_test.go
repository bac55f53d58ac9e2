package main

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"tendril/api"
)

// scriptNowhere reads everything the console serves: each GET route of its API, probes, metrics, and all linked pages.
// The first pattern must not match responses to callers without a token, the second not responses to the owner. Routes
// and pages that are not found are errors, so that new ones are included: nowhere 'canary' 'canary-token'
func scriptNowhere(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: nowhere PATTERN PATTERN-FOR-THE-OWNER")
	}
	r := &secretsReader{ts: ts, base: "http://" + ts.Getenv("CONSOLE")}
	defer http.DefaultClient.CloseIdleConnections()
	paths := append(r.routes(), r.pages()...)
	for _, who := range []struct{ name, token, pattern string }{
		{"nobody", "", args[0]}, {"the owner", ts.Getenv("TOKEN"), args[1]}} {
		pattern := regexp.MustCompile(who.pattern)
		for _, path := range paths {
			status, body := r.get(path, who.token)
			if who.token != "" && status >= http.StatusInternalServerError {
				ts.Fatalf("GET %s: %d %s", path, status, body)
			}
			if at := pattern.FindStringIndex(body); at != nil {
				ts.Fatalf("GET %s shows %s a secret: …%s…", path, who.name, body[max(at[0]-200, 0):min(at[1]+100, len(body))])
			}
		}
	}
	fmt.Fprintf(ts.Stdout(), "read %d routes and pages\n", len(paths))
}

type secretsReader struct {
	ts   *testscript.TestScript
	base string
}

func (r *secretsReader) get(path, token string) (int, string) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, r.base+path, http.NoBody)
	r.ts.Check(err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	r.ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	r.ts.Check(err)
	return resp.StatusCode, fmt.Sprint(resp.Header) + "\n" + string(body)
}

func (r *secretsReader) routes() []string {
	client, err := api.Dial(r.ts.Getenv("TENDRIL_DATA_DIR"))
	r.ts.Check(err)
	defer client.Close()
	client.Bodies = true
	st, err := client.Status(context.Background())
	r.ts.Check(err)
	var queues, messages, tasks []string
	for _, q := range st.Queues {
		queues = append(queues, q.Name)
		found, _, err := client.Messages(context.Background(), q.Name, api.Filter{})
		r.ts.Check(err)
		for _, m := range found {
			messages = append(messages, q.Name+"/messages/"+m.ID)
		}
	}
	for _, t := range st.Tasks.Tasks {
		tasks = append(tasks, t.Name)
	}
	if len(queues) == 0 || len(messages) == 0 || len(tasks) == 0 {
		r.ts.Fatalf("there are queues %v, messages %v and tasks %v: some of each are needed", queues, messages, tasks)
	}
	_, answer := r.get("/api/v1/openapi.json", "")
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	r.ts.Check(json.Unmarshal([]byte(answer[strings.Index(answer, "\n{"):]), &document))
	paths := []string{"/livez?verbose", "/healthz?verbose", "/readyz?verbose", "/startupz?verbose", "/metrics", "/login",
		"/api/v1/nothing"}
	for path, operations := range document.Paths {
		if operations["get"] == nil {
			continue
		}
		values := []string{""}
		switch {
		case strings.Contains(path, "/queues/{name}/messages/{id}"):
			path, values = strings.Replace(path, "{name}/messages/{id}", "{}", 1), messages
		case strings.Contains(path, "/queues/{name}"):
			path, values = strings.Replace(path, "{name}", "{}", 1), queues
		case strings.Contains(path, "/tasks/{name}"):
			path, values = strings.Replace(path, "{name}", "{}", 1), tasks
		case strings.Contains(path, "/messages/{id}"):
			path = strings.Replace(path, "{id}", "{}", 1)
			for _, m := range messages {
				values = append(values, m[strings.LastIndex(m, "/")+1:])
			}
			values = values[1:]
		case strings.Contains(path, "{"):
			r.ts.Fatalf("say here what stands for the wildcard of %s", path)
		}
		for _, value := range values {
			paths = append(paths, strings.Replace(path, "{}", value, 1))
		}
	}
	return paths
}

func (r *secretsReader) screens() (patterns []string) {
	files, err := filepath.Glob("../../internal/console/web/*.go")
	r.ts.Check(err)
	screen, form := regexp.MustCompile(`path: "(/[^"]*)", entry: `), regexp.MustCompile(`form: +true`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		r.ts.Check(err)
		all := screen.FindAllSubmatchIndex(source, -1)
		for i, at := range all {
			end := len(source)
			if i+1 < len(all) {
				end = all[i+1][0]
			}
			if !form.Match(source[at[1]:end]) {
				patterns = append(patterns, string(source[at[2]:at[3]]))
			}
		}
	}
	if len(patterns) < 16 {
		r.ts.Fatalf("only %d screens are found in package web", len(patterns))
	}
	return patterns
}

// maxPages limits the pages to follow, because lists and filters multiply.
const maxPages = 400

func (r *secretsReader) pages() (paths []string) {
	link := regexp.MustCompile(`(?:href|action)="(/[^"]*)"`)
	pages, reached := http.NewServeMux(), map[string]bool{}
	screens := r.screens()
	for _, path := range screens {
		pages.Handle("GET "+path, http.NotFoundHandler())
	}
	known := map[string]bool{"/": true}
	for queue := []string{"/"}; len(queue) > 0 && len(paths) < maxPages; queue = queue[1:] {
		req, err := http.NewRequest(http.MethodGet, queue[0], http.NoBody)
		r.ts.Check(err)
		if _, pattern := pages.Handler(req); pattern != "" {
			reached[pattern] = true
			paths = append(paths, queue[0])
		}
		_, page := r.get(queue[0], r.ts.Getenv("TOKEN"))
		for _, found := range link.FindAllStringSubmatch(page, -1) {
			if path := html.UnescapeString(found[1]); !known[path] {
				known[path] = true
				queue = append(queue, path)
			}
		}
	}
	for _, path := range screens {
		if !reached["GET "+path] {
			r.ts.Fatalf("no link leads to the page %s: have this script's environment contain what it shows", path)
		}
	}
	return paths
}
