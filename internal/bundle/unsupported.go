package bundle

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func (r *reader) reportUnread() {
	for _, e := range r.entries {
		name := e.Name()
		if what := whyUnread(name); what != "" {
			r.notUsed(name, what)
		}
		if e.IsDir() && name != extensionsName {
			r.reportNestedExtensions(name)
		}
	}
	r.reportPackages()
}

func (r *reader) reportNestedExtensions(folder string) {
	if r.hasConfiguration(path.Join(folder, extensionsName)) {
		r.notUsed(path.Join(folder, extensionsName),
			"only .ebextensions at the root of the bundle is read: move its files there")
	}
}

func whyUnread(name string) string {
	switch name {
	case "Dockerfile", "docker-compose.yml", "Dockerrun.aws.json":
		return "containers are not built or run: the Procfile starts the app on this machine"
	case "aws-windows-deployment-manifest.json":
		return "apps of IIS are not run: the Procfile starts the app on this machine"
	case "cron.yml":
		return "this file is not read: put periodic tasks into cron.yaml"
	case "env.yml":
		return "this file is not read: the manifest of the environment is env.yaml"
	}

	for _, known := range []string{procfileName, buildfileName, cronName, manifestName, extensionsName, platformName} {
		if name != known && isSimilar(name, known) {
			return fmt.Sprintf("this is not read: its name must be %s", known)
		}
	}

	return ""
}

func isSimilar(a, b string) bool {
	plain := func(name string) string {
		name = strings.TrimSuffix(strings.ToLower(name), ".txt")
		name = strings.TrimPrefix(name, ".")
		return strings.TrimSuffix(name, "s")
	}
	lacksDot := strings.HasPrefix(b, ".") && !strings.HasPrefix(a, ".")
	return plain(a) == plain(b) && (!lacksDot || b == extensionsName)
}

type packageList struct {
	file   string
	tools  []string
	folder string
	line   string
}

func packageLists() []packageList {
	return []packageList{
		{RequirementsFile, []string{"pip", "pip3", "uv"}, ".venv", "packages: pip install -r requirements.txt"},
		{"Pipfile", []string{"pipenv"}, ".venv", "packages: pipenv install --deploy --system"},
		{"Gemfile", []string{"bundle", "bundler"}, "vendor", "gems: bundle install"},
		{"package.json", []string{"npm", "yarn", "pnpm", "bun"}, "node_modules", "packages: npm install --omit=dev"},
		{"composer.json", []string{"composer", "composer.phar"}, "vendor", "packages: composer install --no-dev"},
	}
}

func (r *reader) reportPackages() {
	lines := r.buildLines()
	for _, l := range packageLists() {
		if !r.has(l.file) || r.has(l.folder) || slices.ContainsFunc(lines, l.installedBy) {
			continue
		}
		if l.file == "package.json" && len(r.packageJSON().Dependencies) == 0 {
			continue
		}
		r.notUsed(l.file, `packages are not installed automatically, and neither the Buildfile nor a hook runs `+l.tools[0]+
			`: write the line "`+l.line+`" into the Buildfile, or install them on this machine`)
	}
}

func (l packageList) installedBy(line []string) bool {
	if slices.Contains(line, l.file) {
		return true
	}
	i := slices.IndexFunc(line, func(word string) bool { return slices.Contains(l.tools, word) })
	if i < 0 {
		return false
	}
	arguments := slices.DeleteFunc(slices.Clone(line[i+1:]), func(word string) bool {
		return strings.HasPrefix(word, "-")
	})
	return len(arguments) == 0 || slices.ContainsFunc(arguments, func(word string) bool {
		return slices.Contains([]string{"install", "ci", "sync", "i", "add", "update"}, word)
	})
}

func (r *reader) buildLines() (lines [][]string) {
	for _, s := range r.bundle.Plan() {
		switch s.Phase {
		case phaseBuild, PhaseCommand:
			command := cmp.Or(s.Shell, strings.Join(s.Argv, " "))
			lines = append(lines, commandLines(command)...)
			for _, word := range strings.Fields(command) {
				lines = append(lines, r.linesOfFile(strings.Trim(word, "\"';"))...)
				if word == "make" {
					lines = append(lines, r.linesOfFile("Makefile")...)
				}
			}
		case PhaseStart:
			lines = append(lines, commandLines(s.Shell)...)
		default:
			lines = append(lines, r.linesOfFile(s.File)...)
		}
	}
	return lines
}

func commandLines(text string) (lines [][]string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\r\n;&|", r) }) {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t()<>\"'`=", r) })
		for i, word := range words {
			words[i] = word[strings.LastIndexByte(word, '/')+1:]
		}
		lines = append(lines, words)
	}
	return lines
}

func (r *reader) linesOfFile(file string) [][]string {
	if !filepath.IsLocal(file) {
		return nil
	}
	data, err := readFile(filepath.Join(r.dir, file), maxDocument)
	if err != nil {
		return nil
	}
	return commandLines(string(data))
}
