package generate

import (
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"text/template"
	"time"

	"tendril/internal/config/yamlfile"
)

// Plan describes an environment for which files are generated.
type Plan struct {
	Name    string
	Args    []string
	Secrets []string
	// App means that tendril starts an app, Beside that it delivers to an app started separately. Otherwise it delivers
	// to a function.
	App, Beside bool
	// Folder is the app's folder on the machine that runs tendril. Command is the given command of the app, if any.
	// AppCommand is the same as a text, or the command in the Procfile.
	Folder              string
	Command             []string
	AppCommand          string
	AppPort             int
	Runtime             Runtime
	Image, TendrilImage string
	// Embedded means that queues are embedded, AWS that queues are on Amazon SQS, in Account and Region.
	Embedded, AWS                              bool
	Account, Region                            string
	ShutdownTimeout, AppGrace, AppReadyTimeout time.Duration
	// MaxReplicas is the maximum number of pods. AdvisesPods passes it to the pods as scale-max-size, whose default would
	// limit the number that they advise to KEDA.
	MaxReplicas int
	AdvisesPods bool
}

// DefaultMaxReplicas is the default of [Plan.MaxReplicas].
const DefaultMaxReplicas = 20

// Runtime is the base image of an app, with the steps to prepare it.
type Runtime struct {
	Image string
	Steps []string
}

// File is a generated file.
type File struct {
	Path, Text string
	// Beside files are not printed, but written next to the first file unless they exist.
	Beside bool
}

var dockerIgnore = File{Path: ".dockerignore", Beside: true, Text: `# Not for the image: secrets, history, and what the image installs itself.
.env
*.env
**/*.env
.git
.venv
node_modules
vendor/bundle
Dockerfile
.dockerignore
compose.yaml
`}

const margin = 20 * time.Second

// StopDelay returns how long the platform must wait before it kills the process.
func (p *Plan) StopDelay() time.Duration { return p.ShutdownTimeout + p.AppGrace + margin }

// StartDelay returns how long the platform must wait for startup.
func (p *Plan) StartDelay() time.Duration { return p.AppReadyTimeout + 3*margin/2 }

const (
	appFolder = "/srv/app"
	replicas  = 3
)

var notInLabel = regexp.MustCompile(`[^a-z0-9-]+`)

// Label converts a name to a Kubernetes name of at most 50 lower-case letters, digits and dashes.
func Label(name string) string {
	label := strings.Trim(notInLabel.ReplaceAllString(strings.ToLower(name), "-"), "-")
	label = label[:min(len(label), 50)]
	if label == "" {
		return "worker"
	}
	return strings.TrimRight(label, "-")
}

// Systemd returns the environment's unit. With split, the app gets a separate unit.
func Systemd(p *Plan, split bool) []File {
	v := newView(p)
	v.Unit = "tendril-" + p.Name
	v.Split = split
	v.RunsApp = p.App && !split
	if !split {
		v.Start = p.command(p.Folder)
		return []File{{Path: v.Unit + ".service", Text: v.render("tendril.service")}}
	}
	v.Start = append(append([]string{"up"}, p.Args...), fmt.Sprintf("--target=http://127.0.0.1:%d/", p.AppPort))
	return []File{{Path: v.Unit + ".service", Text: v.render("tendril.service")},
		{Path: p.Name + "-app.service", Text: v.render("app.service")}}
}

func (p *Plan) command(folder string) []string {
	command := append([]string{"up"}, p.Args...)
	switch {
	case !p.App:
		return command
	case len(p.Command) > 0:
		return append(append(command, "--"), p.Command...)
	}
	return append(command, folder)
}

// Docker returns the Dockerfile of an image with the app and tendril, or of tendril with its settings.
func Docker(p *Plan) []File {
	return p.withIgnored(File{Path: "Dockerfile", Text: newView(p).render("Dockerfile")})
}

func (p *Plan) withIgnored(first File) []File {
	if !p.App {
		return []File{first}
	}
	return []File{first, dockerIgnore}
}

// Compose returns a file for Docker Compose.
func Compose(p *Plan) []File {
	return p.withIgnored(File{Path: "compose.yaml", Text: newView(p).render("compose.yaml")})
}

// Kubernetes returns a manifest with tendril as a sidecar of the app, or with both in one container.
func Kubernetes(p *Plan) []File {
	manifest := "worker.yaml"
	if p.Beside {
		manifest = "sidecar.yaml"
	}
	return []File{{Path: p.Name + ".yaml", Text: newView(p).render(manifest)}}
}

// KEDA returns the manifest that scales the pods of [Kubernetes].
func KEDA(p *Plan) []File {
	return []File{{Path: p.Name + "-keda.yaml", Text: newView(p).render("keda.yaml")}}
}

type view struct {
	*Plan
	Unit           string
	Split, RunsApp bool
	Start, Command []string
	PodImage       string
	Replicas       int
}

func newView(p *Plan) *view {
	v := &view{Plan: p, Replicas: replicas, PodImage: p.TendrilImage, Command: p.command(appFolder)}
	if p.App {
		v.PodImage = p.Image
	}
	return v
}

// InHome reports whether systemd's ProtectHome would hide the app's folder.
func (v *view) InHome() bool {
	return strings.HasPrefix(v.Folder, "/home/") || strings.HasPrefix(v.Folder, "/root/")
}

//go:embed templates/*.tmpl
var files embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"join": strings.Join, "yaml": yamlfile.Text, "unit": unitWord,
		"seconds": func(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) },
		"exec": func(words []string) (string, error) {
			text, err := json.Marshal(words)
			return strings.ReplaceAll(string(text), `","`, `", "`), err
		},
	}).ParseFS(files, "templates/*.tmpl"))
})

func (v *view) render(name string) string {
	var b strings.Builder
	if err := templates().ExecuteTemplate(&b, name+".tmpl", v); err != nil {
		panic(err)
	}
	return strings.TrimLeft(b.String(), "\n")
}

// unitWord escapes "%" and "$", which have a special meaning in a systemd unit.
func unitWord(text string) string {
	text = strings.NewReplacer(`%`, `%%`, `$`, `$$`).Replace(text)
	if text != "" && !strings.ContainsAny(text, " \t\"'\\;") {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
