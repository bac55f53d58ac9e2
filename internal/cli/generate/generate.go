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

// Plan describes a deployment.
type Plan struct {
	// Name is the environment's name; see [Label] for its characters.
	Name string
	// Args are the flags of 'tendril up', as "--name=value".
	Args []string
	// Secrets are the names of variables that hold settings, and whose values are secret.
	Secrets []string
	// App means that tendril starts an app, Beside that messages go to an app that is started elsewhere. With neither they
	// go to a function.
	App, Beside bool
	// Folder is the app's on this machine, or the working folder; Command the app's program and arguments where these
	// were given, else nil; and AppCommand the line of its Procfile.
	Folder     string
	Command    []string
	AppCommand string
	// AppPort is where the app listens.
	AppPort int
	Runtime Runtime
	// Image and TendrilImage are the images of the app and of tendril.
	Image, TendrilImage string
	// Embedded means that queues are embedded, and AWS that a part of the environment is on AWS, in Account and Region.
	Embedded, AWS   bool
	Account, Region string
	// ShutdownTimeout, AppGrace and AppReadyTimeout are how long stops and starts take.
	ShutdownTimeout, AppGrace, AppReadyTimeout time.Duration
}

// Runtime is the base of an image of the app.
type Runtime struct {
	Image string
	// Steps are the instructions that install what the app needs, before its files are copied.
	Steps []string
}

// File is one file, with where it belongs on the machine; without a folder where that is anywhere.
type File struct {
	Path, Text string
	// Beside means that it goes into the folder of the first file, unless there is one of that name, and is not printed.
	Beside bool
}

// dockerIgnore keeps secrets, history and files that an image builds itself out of the image.
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

// margin is how much longer a platform waits than the drain and the stop of the app take.
const margin = 20 * time.Second

// StopDelay is how long the platform has to wait before it kills.
func (p *Plan) StopDelay() time.Duration { return p.ShutdownTimeout + p.AppGrace + margin }

// StartDelay is how long the platform has to wait for a start.
func (p *Plan) StartDelay() time.Duration { return p.AppReadyTimeout + 3*margin/2 }

// Names and numbers that do not come from the settings.
const (
	appFolder   = "/srv/app" // in an image
	replicas    = 2
	maxReplicas = 20
)

var notInLabel = regexp.MustCompile(`[^a-z0-9-]+`)

// Label is a name as Kubernetes takes it: at most 50 lower case letters, digits and dashes between.
func Label(name string) string {
	label := strings.Trim(notInLabel.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if label = label[:min(len(label), 50)]; label == "" {
		return "worker"
	}
	return strings.TrimRight(label, "-")
}

// Systemd returns the unit of the environment. With split the app has a unit of its own.
func Systemd(p *Plan, split bool) []File {
	v := newView(p)
	v.Unit = "tendril-" + p.Name
	v.Split = split
	v.RunsApp = p.App && !split
	v.Start = append([]string{"up"}, p.Args...)
	if split {
		v.Start = append(v.Start, fmt.Sprintf("--target=http://127.0.0.1:%d/", p.AppPort))
	} else if p.App && len(p.Command) == 0 {
		v.Start = append(v.Start, p.Folder)
	} else if p.App {
		v.Start = append(append(v.Start, "--"), p.Command...)
	}

	files := []File{{Path: v.Unit + ".service", Text: v.render("tendril.service")}}
	if split {
		files = append(files, File{Path: p.Name + "-app.service", Text: v.render("app.service")})
	}

	return files
}

// Docker returns the Dockerfile of an image of the app with tendril in it, or of tendril with its settings.
func Docker(p *Plan) []File {
	return p.image(File{Path: "Dockerfile", Text: newView(p).render("Dockerfile")})
}

// image adds the files that an image of the app needs beside the first one.
func (p *Plan) image(first File) []File {
	if !p.App {
		return []File{first}
	}
	return []File{first, dockerIgnore}
}

// Compose returns the file of Docker Compose.
func Compose(p *Plan) []File {
	return p.image(File{Path: "compose.yaml", Text: newView(p).render("compose.yaml")})
}

// Kubernetes returns the manifest: tendril beside the app in one pod, or with it in one container.
func Kubernetes(p *Plan) []File {
	if p.Beside {
		return []File{{Path: p.Name + ".yaml", Text: newView(p).render("sidecar.yaml")}}
	}
	return []File{{Path: p.Name + ".yaml", Text: newView(p).render("worker.yaml")}}
}

// KEDA returns the manifest that scales the pods of [Kubernetes].
func KEDA(p *Plan) []File {
	return []File{{Path: p.Name + "-keda.yaml", Text: newView(p).render("keda.yaml")}}
}

// view is the data of the templates.
type view struct {
	*Plan
	Unit                  string
	Split, RunsApp        bool
	Start, Command        []string
	PodImage              string
	Replicas, MaxReplicas int
}

func newView(p *Plan) *view {
	v := &view{Plan: p, Replicas: replicas, MaxReplicas: maxReplicas, PodImage: p.TendrilImage}
	if p.App {
		v.PodImage = p.Image
	}
	v.Command = v.containerCommand()
	return v
}

// InHome reports whether the app lies where ProtectHome would hide it.
func (v *view) InHome() bool {
	return strings.HasPrefix(v.Folder, "/home/") || strings.HasPrefix(v.Folder, "/root/")
}

// containerCommand is the command line behind the program in a container.
func (v *view) containerCommand() []string {
	command := append([]string{"up"}, v.Args...)
	if v.App && len(v.Plan.Command) == 0 {
		return append(command, appFolder)
	} else if v.App {
		return append(append(command, "--"), v.Plan.Command...)
	}
	return command
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
		panic(err) // a template that does not fit the view, which the tests show
	}
	return strings.TrimLeft(b.String(), "\n")
}

// unitWord is one word of a command line in a unit of systemd, which would expand "%" and "$".
func unitWord(text string) string {
	text = strings.NewReplacer(`%`, `%%`, `$`, `$$`).Replace(text)
	if text != "" && !strings.ContainsAny(text, " \t\"'\\;") {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
