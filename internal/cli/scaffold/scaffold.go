package scaffold

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"tendril/internal/bundle"
	"tendril/internal/config"
)

// App is a recognized app and how to run it.
type App struct {
	// Platform is a framework or language, such as "Node.js". File identifies it.
	Platform, File string
	// Web is the app's command for the Procfile; "" if a Procfile exists. Lambda is the command of a local Lambda
	// function, whose own runtime receives the messages.
	Web, Lambda string
	// Before holds commands that must be run once in the folder.
	Before []string
	// Connections is the number of messages processed concurrently; 0 means no limit.
	Connections int
	// Note explains what the app needs besides the command; may be "".
	Note string
}

// pool is the number of messages that servers with a fixed number of threads or workers process at once.
const pool = 8

var (
	errContainer = errors.New("this app is built for a container, which tendril does not start; start it yourself " +
		"and give its address: tendril up --target http://127.0.0.1:8080/, or write a Procfile that starts the " +
		"app without a container")
	errUnknown = errors.New("no app detected; write a Procfile with the line \"web: COMMAND\", for an app that " +
		"listens on PORT")
)

// Recognize identifies the app in a folder and the command that starts it. requirementsMet reports whether this machine
// has the packages in the app's [bundle.RequirementsFile].
func Recognize(folder fs.FS, requirementsMet bool) (*App, error) {
	f := files{folder, requirementsMet}
	if f.first("Procfile") != "" {
		return &App{Platform: "an app", File: "Procfile"}, nil
	}
	for _, platform := range []func() *App{f.function, f.node, f.python, f.ruby, f.goModule, f.php, f.java, f.dotNet} {
		if app := platform(); app != nil {
			return app, nil
		}
	}
	if f.first("Dockerfile", "Containerfile", "docker-compose.yml", "compose.yaml", "Dockerrun.aws.json") != "" {
		return nil, errContainer
	}
	return nil, errUnknown
}

type files struct {
	folder          fs.FS
	requirementsMet bool
}

const maxRead = 1 << 20

func (f files) text(name string) string {
	info, err := fs.Stat(f.folder, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRead {
		return ""
	}
	data, err := fs.ReadFile(f.folder, name)
	if err != nil {
		return ""
	}
	return string(data)
}

func (f files) first(names ...string) string {
	for _, name := range names {
		if info, err := fs.Stat(f.folder, name); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

func (f files) match(patterns ...string) string {
	for _, pattern := range patterns {
		if found, err := fs.Glob(f.folder, pattern); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

func (f files) has(folder string) bool {
	info, err := fs.Stat(f.folder, folder)
	return err == nil && info.IsDir()
}

func (f files) function() *App {
	if f.first("bootstrap") == "" {
		return nil
	}
	return &App{Platform: "a Lambda function", File: "bootstrap", Lambda: "./bootstrap"}
}

type packageJSON struct {
	Main           string            `json:"main"`
	PackageManager string            `json:"packageManager"`
	Scripts        map[string]string `json:"scripts"`
	Dependencies   map[string]string `json:"dependencies"`
}

func (f files) node() *App {
	var manifest packageJSON
	_ = json.Unmarshal([]byte(f.text("package.json")), &manifest) // npm will report the error
	script := f.nodeScript(manifest.Main)
	start := manifest.Scripts["start"]
	if start == "" && script == "" {
		return nil
	}

	manager := f.packageManager(manifest.PackageManager)
	app := &App{Platform: "Node.js", File: cmp.Or(f.first("package.json"), script)}
	switch {
	case start != "":
		app.Web = manager + " run start"
	case manager == "bun":
		app.Web = "bun " + script
	default:
		app.Web = "node " + script
	}

	if manifest.Dependencies["express"] != "" {
		app.Platform = "Express"
	}
	if strings.Contains(cmp.Or(start, script), script) {
		app.Note = f.noteOfPort(script, "process.env.PORT")
	}
	if len(manifest.Dependencies) > 0 && !f.has("node_modules") {
		app.Before = []string{manager + " install"}
	}
	return app
}

func (f files) nodeScript(main string) string {
	if main = path.Clean(main); isPlain(main) && f.first(main) != "" {
		return main
	}
	return f.first("server.js", "app.js", "index.js", "main.js")
}

func (f files) noteOfPort(script, variable string) string {
	if text := f.text(script); strings.Contains(text, "listen") && !strings.Contains(text, "PORT") {
		return script + " does not read the variable PORT: make it listen on " + variable
	}
	return ""
}

func (f files) packageManager(named string) string {
	name, _, _ := strings.Cut(named, "@")
	for _, known := range [][]string{{"pnpm", "pnpm-lock.yaml"}, {"bun", "bun.lock", "bun.lockb"}, {"yarn", "yarn.lock"}} {
		manager, locks := known[0], known[1:]
		if name == manager || name == "" && f.first(locks...) != "" {
			return manager
		}
	}
	return "npm"
}

var (
	djangoSettings = regexp.MustCompile(`DJANGO_SETTINGS_MODULE["'],\s*["']([A-Za-z_]\w*)\.settings`)
	fastAPI        = regexp.MustCompile(`(?m)^([A-Za-z_]\w*)\s*(?::[^=\n]+)?=\s*(?:fastapi\.)?FastAPI\(`)
	flask          = regexp.MustCompile(`(?m)^([A-Za-z_]\w*)\s*(?::[^=\n]+)?=\s*(?:flask\.)?Flask\(`)
)

func (f files) python() *App {
	app := f.pythonApp()
	if app == nil {
		return nil
	}
	run, install := f.pythonTool()
	app.Web, app.Before = run+app.Web, install
	return app
}

// pythonTool returns no prefix for a virtual environment in the folder, because 'tendril up' activates it.
func (f files) pythonTool() (run string, install []string) {
	project := f.text("pyproject.toml")
	switch {
	case f.first("uv.lock") != "" || strings.Contains(project, "[tool.uv"):
		return "uv run ", nil // installs missing packages itself
	case f.first("poetry.lock") != "" || strings.Contains(project, "[tool.poetry"):
		return "poetry run ", []string{"poetry install"}
	case f.first("Pipfile") != "":
		return "pipenv run ", []string{"pipenv install"}
	case f.requirementsMet || f.first(".venv/pyvenv.cfg", "venv/pyvenv.cfg") != "":
		return "", nil
	case f.first(bundle.RequirementsFile) != "":
		return "", []string{"python3 -m venv .venv", ".venv/bin/pip install -r " + bundle.RequirementsFile}
	case f.first("pyproject.toml") != "":
		return "", []string{"python3 -m venv .venv", ".venv/bin/pip install ."}
	}
	return "", nil
}

func (f files) pythonApp() *App {
	if app := f.django(); app != nil {
		return app
	}
	scripts := []string{"application.py", "app.py", "main.py", "server.py", "wsgi.py"}
	for _, script := range scripts {
		if app := f.pythonServer(script); app != nil {
			return app
		}
	}
	script := f.first(scripts...)
	if script == "" {
		return nil
	}
	return &App{Platform: "Python", File: script, Web: "python3 " + script,
		Note: f.noteOfPort(script, `int(os.environ["PORT"])`)}
}

func (f files) django() *App {
	settings := djangoSettings.FindStringSubmatch(f.text("manage.py"))
	if settings == nil {
		return nil
	}
	app := &App{Platform: "Django", File: "manage.py", Web: "python3 manage.py runserver --noreload 127.0.0.1:$PORT",
		Note: "Django rejects POSTs without a token (403): decorate the view with @csrf_exempt"}
	f.preferGunicorn(app, settings[1]+".wsgi")
	return app
}

func (f files) pythonServer(script string) *App {
	module, text := strings.TrimSuffix(script, ".py"), f.text(script)
	if variable := fastAPI.FindStringSubmatch(text); variable != nil {
		return &App{Platform: "FastAPI", File: script,
			Web: "uvicorn --host 127.0.0.1 --port $PORT " + module + ":" + variable[1]}
	}
	variable := flask.FindStringSubmatch(text)
	if variable == nil {
		return nil
	}
	name := module + ":" + variable[1]
	app := &App{Platform: "Flask", File: script, Web: "flask --app " + name + " run --port $PORT"}
	f.preferGunicorn(app, name)
	return app
}

// preferGunicorn runs the app with gunicorn if it is one of the app's packages. gunicorn's defaults do not suit a
// worker: it serves one request at a time, kills it after 30 seconds, and listens before it loads the app, so a version
// that cannot be loaded would replace the previous one.
func (f files) preferGunicorn(app *App, name string) {
	installed := f.first(".venv/bin/gunicorn", "venv/bin/gunicorn") != ""
	for _, list := range []string{bundle.RequirementsFile, "pyproject.toml", "Pipfile"} {
		installed = installed || strings.Contains(strings.ToLower(f.text(list)), "gunicorn")
	}
	if installed {
		app.Web = fmt.Sprintf("gunicorn --bind 127.0.0.1:$PORT --threads %d --timeout 0 --preload %s", pool, name)
		app.Connections = pool
	}
}

func (f files) ruby() *App {
	app := &App{Platform: "Ruby", File: "config.ru"}
	if f.first("Gemfile") != "" {
		app.Before = []string{"bundle install"}
	}

	switch {
	case f.first("bin/rails") != "":
		app.Platform = "Rails"
		app.File = "bin/rails"
		app.Connections = pool
		app.Web = fmt.Sprintf("RAILS_MAX_THREADS=%d bin/rails server --binding 127.0.0.1 --port $PORT", pool)
		app.Note = "Rails rejects POSTs without a token (422): write skip_forgery_protection into the controller"
	case f.first("config.ru") == "":
		return nil
	case strings.Contains(f.text("Gemfile"), "puma"):
		app.Web, app.Connections = fmt.Sprintf("bundle exec puma --threads %d --bind tcp://127.0.0.1:$PORT", pool), pool
	default:
		app.Web = "bundle exec rackup --host 127.0.0.1 --port $PORT"
	}

	return app
}

var packageMain = regexp.MustCompile(`(?m)^package main\b`)

func (f files) goModule() *App {
	if f.first("go.mod") == "" {
		return nil
	}
	names, _ := fs.Glob(f.folder, "*.go")
	commands, _ := fs.Glob(f.folder, "cmd/*/*.go")
	for _, name := range append(names, commands...) {
		if strings.HasSuffix(name, "_test.go") || !packageMain.MatchString(f.text(name)) {
			continue
		}
		switch folder := path.Dir(name); {
		case folder == ".":
			return &App{Platform: "Go", File: "go.mod", Web: "go run ."}
		case isPlain(folder):
			return &App{Platform: "Go", File: "go.mod", Web: "go run ./" + folder}
		}
	}
	return nil
}

// php removes the time limit: by default, PHP's own server ends requests after 30 seconds.
func (f files) php() *App {
	root := ""
	switch {
	case f.first("public/index.php") != "":
		root = " -t public"
	case f.first("index.php") == "":
		return nil
	}

	app := &App{Platform: "PHP", File: f.first("artisan", "composer.json", "public/index.php", "index.php"), Connections: pool,
		Web: fmt.Sprintf("PHP_CLI_SERVER_WORKERS=%d php -d max_execution_time=0 -S 127.0.0.1:$PORT%s", pool, root)}
	if app.File == "artisan" {
		app.Platform = "Laravel"
		app.Note = "Laravel rejects POSTs without a token (419): write the route into routes/api.php, or exclude its path " +
			"with validateCsrfTokens in bootstrap/app.php"
	}
	if f.first("composer.json") != "" && !f.has("vendor") {
		app.Before = []string{"composer install"}
	}
	return app
}

// java passes the port as a property for Spring Boot. Other apps read PORT.
func (f files) java() *App {
	const run = "java -Dserver.port=$PORT -jar "
	app := &App{Platform: "Java", File: f.match("*.jar")}
	switch {
	case app.File != "" && isPlain(app.File):
		app.Web = run + app.File
	case f.first("pom.xml") != "":
		app.File, app.Web = "pom.xml", run+"target/*.jar"
		app.Before = []string{f.wrapper("mvnw", "mvn") + " package"}
	case f.first("build.gradle", "build.gradle.kts") != "":
		app.File, app.Web = f.first("build.gradle", "build.gradle.kts"), run+"build/libs/*.jar"
		task := " build"
		if f.isSpring(app.File) {
			task = " bootJar" // build adds a second jar, without dependencies
		}
		app.Before = []string{f.wrapper("gradlew", "gradle") + task}
	default:
		return nil
	}

	if f.isSpring(app.File) {
		app.Platform = "Spring Boot"
	}
	return app
}

func (f files) isSpring(build string) bool {
	return strings.Contains(f.text(build), "springframework.boot")
}

func (f files) wrapper(script, tool string) string {
	if f.first(script) != "" {
		return "./" + script
	}
	return tool
}

func (f files) dotNet() *App {
	if file := f.match("*.csproj", "*.fsproj"); file != "" {
		return &App{Platform: ".NET", File: file, Web: "dotnet run --urls http://127.0.0.1:$PORT"}
	}
	return nil
}

var plainPath = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

func isPlain(name string) bool {
	return plainPath.MatchString(name) && !slices.Contains(strings.Split(name, "/"), "..")
}

// File is a file to be written.
type File struct{ Name, Text string }

// Files returns the files to write: the settings and, if Web is set, a Procfile.
func (a *App) Files(folder string) []File {
	settings := File{"tendril.yaml", a.settings(folder)}
	if a.Web == "" {
		return []File{settings}
	}
	return []File{{"Procfile", fmt.Sprintf(`# Processes to start and keep running. web is the app: it receives each message as a POST on the
# port in the variable PORT. A response with status 200 means that the message is done.
web: %s
`, a.Web)}, settings}
}

// setting is a suggestion. The value "" means the example in the option's documentation.
type setting struct{ key, value string }

func (a *App) offered() []setting {
	of := []setting{{"http_path", "/jobs"}, {"inactivity_timeout", "5m"}}
	if a.Lambda != "" {
		of = []setting{{"function_timeout", "1m"}}
	}
	if a.Connections == 0 {
		of = append(of, setting{"http_connections", "10"})
	}
	return append(of, setting{"max_retries", "5"}, setting{"queue_url", ""})
}

func (a *App) settings(folder string) string {
	var b strings.Builder
	b.WriteString(`# Settings of this environment. 'tendril explain OPTION' explains one, 'tendril up --help-all'
# lists all. Uncomment the lines you need, and apply them with 'tendril reload'.

`)
	name := environmentName(folder)
	offered := a.offered()
	if a.Lambda != "" { // not run as a folder, so without a setting its name would be the default
		fmt.Fprintf(&b, "# Name of the environment and of its queue.\nname: %s\n\n", name)
		fmt.Fprintf(&b, "# The function that runs on this machine and receives the messages.\nlambda: %s\n\n", a.Lambda)
	} else { // a name written out would replace the name in env.yaml, and count as chosen by the user
		offered = slices.Insert(offered, 0, setting{"name", name})
	}

	if a.Connections > 0 {
		fmt.Fprintf(&b, "# Messages delivered to the app at once, equal to the threads or workers of the command "+
			"in the Procfile.\nhttp_connections: %d\n\n", a.Connections)
	}

	for i, s := range offered {
		if o, found := config.Lookup(s.key); found {
			if i > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "# %s Default: %s.\n#%s: %s\n", o.Help, strings.TrimSuffix(o.DefaultText(), "."), o.Key,
				cmp.Or(s.value, o.ExampleText()))
		}
	}

	return b.String()
}

func environmentName(folder string) string {
	return cmp.Or((&bundle.Bundle{Called: folder}).Name(), "app")
}
