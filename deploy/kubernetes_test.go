package deploy_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"tendril/internal/autoscale"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/testing/testpeer"
)

// releases are the oldest release with stable sidecars and the newest known release.
var releases = []string{"1.33", "1.37"}

func documents(t *testing.T, file string) (docs []map[string]any) {
	t.Helper()
	for _, text := range strings.Split(read(t, file), "\n---\n") {
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		docs = append(docs, doc)
	}
	return docs
}

// all returns the documents of Kubernetes kinds or, if custom is set, of custom kinds.
func all(t *testing.T, custom bool) (docs []map[string]any) {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("the manifests are %q: %v", files, err)
	}
	for _, file := range files {
		for _, doc := range documents(t, file) {
			version, _ := doc["apiVersion"].(string)
			group, _, _ := strings.Cut(version, "/")
			if others := strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io"); others == custom {
				docs = append(docs, doc)
			}
		}
	}
	return docs
}

func asJSON(t *testing.T, docs ...map[string]any) string {
	t.Helper()
	data, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func with(t *testing.T, doc map[string]any, in, name string, value any) map[string]any {
	t.Helper()
	var clone map[string]any
	if err := json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(asJSON(t, doc), "["), "]")),
		&clone); err != nil {
		t.Fatal(err)
	}
	clone[in].(map[string]any)[name] = value
	return clone
}

func TestKubernetesTakesTheManifests(t *testing.T) {
	t.Parallel()
	python := testpeer.Python(t, "kubernetes-validate", "kubernetes_validate")
	docs := all(t, false)
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			if out, err := tool(asJSON(t, docs...), python, "testdata/kubernetes.py", release); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	t.Run("a mistake is found", func(t *testing.T) {
		t.Parallel()
		if out, err := tool(asJSON(t, with(t, docs[0], "spec", "replica", 2)), python, "testdata/kubernetes.py",
			releases[0]); err == nil {
			t.Errorf("a field that does not exist is accepted: %s", out)
		}
	})
}

func TestOperatorsTakeTheManifests(t *testing.T) {
	t.Parallel()
	modules := testpeer.NodeModules(t, "@kubernetes-models/keda", "@kubernetes-models/prometheus-operator")
	docs := all(t, true)
	if len(docs) != 2 {
		t.Fatalf("%d documents of others' kinds", len(docs))
	}
	if out, err := tool(asJSON(t, docs...), "node", "testdata/custom.mjs", modules); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, doc := range docs {
		for name, value := range map[string]any{"minReplicas": 1, "selector": 7} {
			if out, err := tool(asJSON(t, with(t, doc, "spec", name, value)), "node", "testdata/custom.mjs",
				modules); err == nil {
				t.Errorf("%s accepts %s: %v: %s", doc["kind"], name, value, out)
			}
		}
	}
}

type (
	deployment struct {
		Kind string
		Spec struct {
			Template struct{ Spec pod }
		}
		StringData map[string]string `yaml:"stringData"`
	}
	pod struct {
		Grace          int         `yaml:"terminationGracePeriodSeconds"`
		InitContainers []container `yaml:"initContainers"`
		Containers     []container
	}
	container struct {
		Name, Image   string
		RestartPolicy string `yaml:"restartPolicy"`
		Args          []string
		Env           []struct{ Name, Value string }
		Ports         []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		StartupProbe   *probe `yaml:"startupProbe"`
		LivenessProbe  *probe `yaml:"livenessProbe"`
		ReadinessProbe *probe `yaml:"readinessProbe"`
		Lifecycle      struct {
			PreStop *probe `yaml:"preStop"`
		}
		VolumeMounts []struct {
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
		SecurityContext struct {
			ReadOnly bool `yaml:"readOnlyRootFilesystem"`
		} `yaml:"securityContext"`
	}
	probe struct {
		HTTPGet struct {
			Path    string
			Port    any
			Headers []struct{ Name, Value string } `yaml:"httpHeaders"`
		} `yaml:"httpGet"`
	}
)

// drainToken permits only draining.
func deployed(t *testing.T, file string) (p pod, drainToken string) {
	t.Helper()
	for _, text := range strings.Split(read(t, file), "\n---\n") {
		var d deployment
		if err := yaml.Unmarshal([]byte(text), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch d.Kind {
		case "Deployment":
			p = d.Spec.Template.Spec
		case "Secret":
			if owner := d.StringData["token"]; owner != "REPLACE-ME" {
				t.Errorf("%s: the owner's token is %q, with which tendril would start", file, owner)
			}
			drainToken = d.StringData["drain-token"]
		}
	}
	return p, drainToken
}

func (p *probe) header(name string) string {
	for _, h := range p.HTTPGet.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

func (c *container) settings(t *testing.T) *config.Config {
	t.Helper()
	environ := []string{"TENDRIL_DATA_DIR=/var/lib/tendril/data"}
	for _, e := range c.Env {
		environ = append(environ, e.Name+"="+e.Value)
	}
	return checkUp(t, c.Name, c.Args, environ)
}

func (c *container) mustWork(t *testing.T, grace time.Duration) {
	t.Helper()
	cfg := c.settings(t)
	if grace < cfg.ShutdownTimeout+20*time.Second {
		t.Errorf("KILL comes after %s, and the drain may take %s", grace, cfg.ShutdownTimeout)
	}
	if !c.SecurityContext.ReadOnly {
		t.Error("the root file system can be written to")
	}
	if cfg.RegistryTable == "" || !cfg.RegistryCreate {
		t.Error("the pods have no registry in common, and each would elect itself")
	}
	if !slices.ContainsFunc(c.VolumeMounts, func(m struct {
		MountPath string `yaml:"mountPath"`
	}) bool {
		return m.MountPath == filepath.Dir(cfg.DataDir)
	}) {
		t.Errorf("nothing is mounted above %s, and the root is read-only", cfg.DataDir)
	}
	_, port, _ := strings.Cut(cfg.Console, ":")
	if len(c.Ports) != 1 || c.Ports[0].Name != "console" || strconv.Itoa(c.Ports[0].ContainerPort) != port {
		t.Errorf("the console listens on %s, and the ports are %v", port, c.Ports)
	}
	if c.StartupProbe != nil {
		t.Error("a startup probe holds the app back, for which it would wait")
	}
	for path, p := range map[string]*probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if p == nil || p.HTTPGet.Path != path || p.HTTPGet.Port != "console" || p.header("Host") != "localhost" {
			t.Errorf("%s is asked by %+v", path, p)
		}
		if status, _ := ask(path, "", p.header); status != http.StatusOK {
			t.Errorf("the console answers %s with %d", path, status)
		}
	}
}

// ask sends a request like a probe of the pod to a console with all its parts.
func ask(path, drainToken string, headers func(name string) string) (status int, body string) {
	server := console.New(&console.Options{
		Token:  "4f1b0c2a9d8e7f60",
		Access: console.Access{DrainToken: drainToken},
		Drain:  func(context.Context) error { return nil },
		Views:  console.Views{Scale: func() autoscale.Scale { return autoscale.Scale{Desired: 3} }},
		// Without a handler, the console itself would respond.
		Handlers: console.Handlers{Metrics: http.NotFoundHandler()},
	})
	defer server.Close()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Host = headers("Host")
	request.Header.Set("Authorization", headers("Authorization"))
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func TestTheSidecarDrainsBeforeTheAppEnds(t *testing.T) {
	t.Parallel()
	p, token := deployed(t, "kubernetes/sidecar.yaml")
	if len(p.InitContainers) != 1 || len(p.Containers) != 1 {
		t.Fatalf("%d sidecars and %d apps", len(p.InitContainers), len(p.Containers))
	}
	sidecar, app := &p.InitContainers[0], &p.Containers[0]
	if sidecar.RestartPolicy != "Always" {
		t.Error("without the restart policy it is not a sidecar, and the app never starts")
	}
	grace := time.Duration(p.Grace) * time.Second
	sidecar.mustWork(t, grace)
	target, err := url.Parse(sidecar.settings(t).Target)
	if err != nil || target.Port() != strconv.Itoa(app.Ports[0].ContainerPort) {
		t.Errorf("messages go to %v, and the app listens on %v", target, app.Ports)
	}

	hook := app.Lifecycle.PreStop
	if hook == nil {
		t.Fatal("the app is stopped while messages still come")
	}
	if hook.header("Authorization") != "Bearer "+token || token == "" || hook.header("Host") != "localhost" {
		t.Error("the hook has not the token of the secret, or names another host")
	}
	// The hook needs a number, because the port's name belongs to a different container.
	if hook.HTTPGet.Port != uint64(sidecar.Ports[0].ContainerPort) {
		t.Errorf("the hook requests port %v, but the ports of the console are %v", hook.HTTPGet.Port, sidecar.Ports)
	}
	asked, err := url.Parse(hook.HTTPGet.Path)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := ask(hook.HTTPGet.Path, token, hook.header); status != http.StatusOK ||
		!strings.Contains(body, `"drained":true`) {
		t.Errorf("the hook gets %d: %s", status, body)
	}
	if status, _ := ask(hook.HTTPGet.Path, "another token", hook.header); status != http.StatusUnauthorized {
		t.Errorf("with another token the hook gets %d", status)
	}
	if wait, err := time.ParseDuration(asked.Query().Get("wait")); err != nil ||
		wait != sidecar.settings(t).ShutdownTimeout {
		t.Errorf("the hook waits for %v (%v), and the drain may take %s", wait, err, sidecar.settings(t).ShutdownTimeout)
	}
}

func TestAWorkerHasItsAppWithin(t *testing.T) {
	t.Parallel()
	p, _ := deployed(t, "kubernetes/worker.yaml")
	if len(p.InitContainers) != 0 || len(p.Containers) != 1 {
		t.Fatalf("%d and %d containers", len(p.InitContainers), len(p.Containers))
	}
	worker := &p.Containers[0]
	worker.mustWork(t, time.Duration(p.Grace)*time.Second)
	if !worker.settings(t).AnyToOwnApp() || worker.Args[len(worker.Args)-1] != "/srv/app" {
		t.Errorf("it runs no app: %q", worker.Args)
	}
	stage := lastStage(read(t, "docker/app.Dockerfile"))
	for _, m := range words(t, "VOLUME", only(t, stage, "VOLUME")) {
		if !slices.ContainsFunc(worker.VolumeMounts, func(v struct {
			MountPath string `yaml:"mountPath"`
		}) bool {
			return v.MountPath == m
		}) {
			t.Errorf("the image writes to %s, where nothing is mounted", m)
		}
	}
}

func TestOthersFindTheConsole(t *testing.T) {
	t.Parallel()
	p, _ := deployed(t, "kubernetes/sidecar.yaml")
	port := p.InitContainers[0].Ports[0]
	var service struct {
		Metadata struct {
			Name   string
			Labels map[string]string
		}
		Spec struct {
			Selector map[string]string
			Ports    []struct {
				Name       string
				TargetPort string `yaml:"targetPort"`
				Port       int
			}
		}
	}
	var scaled struct {
		Spec struct {
			ScaleTargetRef struct{ Name string } `yaml:"scaleTargetRef"`
			Triggers       []struct {
				MetricType string `yaml:"metricType"`
				Metadata   map[string]string
			}
		}
	}
	texts := strings.Split(read(t, "kubernetes/keda.yaml"), "\n---\n")
	if err := yaml.Unmarshal([]byte(texts[0]), &service); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(texts[1]), &scaled); err != nil {
		t.Fatal(err)
	}
	if s := service.Spec; s.Selector["app.kubernetes.io/name"] != "orders" || s.Ports[0].TargetPort != port.Name {
		t.Errorf("the service finds %+v, and the sidecar has %+v", s, port)
	}
	trigger := scaled.Spec.Triggers[0]
	address, err := url.Parse(trigger.Metadata["url"])
	if err != nil || address.Port() != strconv.Itoa(port.ContainerPort) ||
		!strings.HasPrefix(address.Host, service.Metadata.Name+".") {
		t.Errorf("KEDA asks %v: %v", address, err)
	}
	localhost := func(name string) string { return map[string]string{"Host": "localhost"}[name] }
	status, body := ask(address.Path, "", localhost)
	var answer map[string]any
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer[trigger.Metadata["valueLocation"]] != 3.0 {
		t.Errorf("KEDA looks for %s in the answer %d: %s", trigger.Metadata["valueLocation"], status, body)
	}
	var monitor struct {
		Spec struct {
			Selector  struct{ MatchLabels map[string]string } `yaml:"selector"`
			Endpoints []struct{ Port, Path string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "kubernetes/servicemonitor.yaml")), &monitor); err != nil {
		t.Fatal(err)
	}
	end := monitor.Spec.Endpoints[0]
	if end.Port != service.Spec.Ports[0].Name {
		t.Errorf("Prometheus asks port %s", end.Port)
	}
	if _, body := ask(end.Path, "", localhost); !strings.HasPrefix(body, "404 page") {
		t.Errorf("Prometheus asks for %s, which the console does not pass to the metrics: %s", end.Path, body)
	}
	if trigger.MetricType != "AverageValue" || trigger.Metadata["aggregationType"] != "max" ||
		trigger.Metadata["targetValue"] != "1" {
		t.Errorf("a number of pods becomes one by %+v", trigger)
	}
	if scaled.Spec.ScaleTargetRef.Name != "orders" {
		t.Errorf("KEDA scales %s", scaled.Spec.ScaleTargetRef.Name)
	}
}
