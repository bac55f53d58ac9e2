package bundle

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/config/yamlfile"
)

func (r *reader) detectDefault() {
	if r.has("Dockerfile") || r.has("docker-compose.yml") || r.has("Dockerrun.aws.json") {
		r.bundle.Advice = "it is built for Docker: specify how to start the app without a container"
		return
	}

	for _, platform := range []func() *Default{r.goApp, r.nodeApp, r.pythonApp, r.javaApp, r.rubyApp} {
		if d := platform(); d != nil {
			r.bundle.Default = d
			return
		}
	}

	if r.has("go.mod") {
		r.bundle.Advice = `for a Go module: a Buildfile with "build: go build -o bin/application .", and "web: bin/application"`
		return
	}

	r.bundle.Advice = r.innerFolderAdvice()
}

func web(command string) Process { return Process{Name: MainProcess, Command: command} }

func (r *reader) goApp() *Default {
	for _, program := range []string{"bin/application", "application"} {
		if isProgram(filepath.Join(r.dir, program)) {
			return &Default{Platform: "Go", File: program, Process: web("./" + program)}
		}
	}
	if r.has("application.go") {
		return &Default{Platform: "Go", File: "application.go", Process: web("./bin/application"),
			Build: []Process{{Name: "build", Command: "go build -o bin/application application.go"}}}
	}
	return nil
}

func (r *reader) nodeApp() *Default {
	if r.has("package.json") {
		hasStart := r.packageJSON().Scripts["start"] != "" || r.has("server.js") && !r.has("app.js")
		if hasStart {
			return &Default{Platform: "Node.js", File: "package.json", Process: web("npm start")}
		}
	}
	for _, script := range []string{"app.js", "server.js"} {
		if r.has(script) {
			return &Default{Platform: "Node.js", File: script, Process: web("node " + script)}
		}
	}
	return nil
}

func (r *reader) pythonApp() *Default {
	const usual = "application"
	path, _ := r.bundle.Setting(namespacePython, "WSGIPath")
	module, callable, _ := strings.Cut(cmp.Or(path.Value, usual), ":")
	module = strings.ReplaceAll(strings.TrimSuffix(module, ".py"), "/", ".")
	callable = cmp.Or(callable, usual)

	file := strings.ReplaceAll(module, ".", "/") + ".py"
	if !isModule(module) || !isModule(callable) || !isFile(filepath.Join(r.dir, file)) {
		return nil
	}

	workers, validWorkers := r.pythonNumber("NumProcesses", "1")
	threads, validThreads := r.pythonNumber("NumThreads", "15")
	if !validWorkers || !validThreads {
		return nil
	}

	command := fmt.Sprintf("gunicorn --bind 127.0.0.1:$PORT --workers %s --threads %s %s:%s", workers, threads, module, callable)
	return &Default{Platform: "Python", File: file, Process: web(command)}
}

func isModule(s string) bool {
	for _, part := range strings.Split(s, ".") {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return r == '-' || !isNameByte(r) }) {
			return false
		}
	}
	return true
}

func (r *reader) javaApp() *Default {
	var jars []string
	for _, e := range r.entries {
		if strings.HasSuffix(e.Name(), ".jar") && !e.IsDir() {
			jars = append(jars, e.Name())
		}
	}
	if len(jars) != 1 || !isPlainArgument(jars[0]) {
		return nil
	}
	return &Default{Platform: "Java", File: jars[0], Process: web("java -jar " + jars[0])}
}

func isPlainArgument(name string) bool {
	isUnsafe := func(r rune) bool { return r != '.' && !isNameByte(r) }
	return !strings.HasPrefix(name, "-") && !strings.ContainsFunc(name, isUnsafe)
}

func (r *reader) rubyApp() *Default {
	if !r.has("Gemfile") || !r.has("config.ru") {
		return nil
	}
	return &Default{Platform: "Ruby", File: "config.ru", Process: web("bundle exec puma --bind tcp://127.0.0.1:$PORT")}
}

func (r *reader) innerFolderAdvice() string {
	visible := slices.DeleteFunc(slices.Clone(r.entries), func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), ".")
	})
	if len(visible) != 1 || !visible[0].IsDir() {
		return ""
	}
	inner := visible[0].Name()
	if _, err := os.Stat(filepath.Join(r.dir, inner, procfileName)); err != nil {
		return ""
	}
	return "the folder " + yamlfile.Printable(inner) +
		" in it has a Procfile: name that folder, or zip its content instead of the folder itself"
}

func pythonOptions() []string { return []string{"WSGIPath", "NumProcesses", "NumThreads"} }

func (r *reader) pythonNumber(name, usual string) (value string, valid bool) {
	s, _ := r.bundle.Setting(namespacePython, name)
	n, err := strconv.Atoi(cmp.Or(s.Value, usual))
	if err != nil || n < 1 {
		r.refuseLine(s.File, s.Line, name+" "+yamlfile.Printable(s.Value)+" is not a whole number "+
			"of at least 1", "write "+name+": 1")
		return "", false
	}
	return strconv.Itoa(n), true
}

func (r *reader) reportPythonSettings() {
	for _, s := range r.bundle.InForce() {
		if s.Namespace != namespacePython || s.Computed {
			continue
		}
		if why := r.whyNoPythonEffect(s.Option); why != "" {
			f := r.bundle.Finding(s.File, s.Line, yamlfile.Printable(s.Option)+" has no effect: "+why)
			r.bundle.Unsupported = append(r.bundle.Unsupported, f)
		}
	}
}

func (r *reader) whyNoPythonEffect(option string) string {
	d := r.bundle.Default
	switch {
	case !slices.Contains(pythonOptions(), option):
		return "tendril supports only " + strings.Join(pythonOptions(), ", ") + " of " + namespacePython
	case r.has(procfileName):
		return "the Procfile defines how to start the app"
	case d == nil:
		return "the file it names does not exist; write a Procfile that starts the app"
	case d.Platform != "Python":
		return "the app is started as a " + d.Platform + " app, because of " + d.File
	}
	return ""
}
