package scaffold

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tendril/internal/bundle"
	"tendril/internal/config"
)

func folder(files ...string) fs.FS {
	all := fstest.MapFS{}
	for pair := range slices.Chunk(files, 2) {
		all[pair[0]] = &fstest.MapFile{Data: []byte(pair[1])}
	}
	return all
}

func TestCommandsOfInitSuitSlowWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []string
		fixed bool
	}{
		"gunicorn": {[]string{"requirements.txt", "Flask\ngunicorn\n", "app.py", "app = Flask(__name__)\n"}, true},
		"Rails":    {[]string{"Gemfile", "", "bin/rails", ""}, true},
		"puma":     {[]string{"Gemfile", `gem "puma"`, "config.ru", ""}, true},
		"PHP":      {[]string{"index.php", ""}, true},
		"flask":    {[]string{"app.py", "app = Flask(__name__)\n"}, false},
		"Node.js":  {[]string{"server.js", ""}, false},
		"Go":       {[]string{"go.mod", "module x", "main.go", "package main\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, err := Recognize(folder(c.files...), false)
			if err != nil {
				t.Fatal(err)
			}
			files := app.Files("orders")
			settings := files[len(files)-1].Text
			if got := strings.Contains(settings, "\nhttp_connections: 8\n"); got != c.fixed {
				t.Errorf("%s: http_connections set: %t, want %t:\n%s", app.Web, got, c.fixed, settings)
			}
			if c.fixed && !regexp.MustCompile(`(THREADS|WORKERS|--threads)[= ]8 `).MatchString(app.Web) {
				t.Errorf("%s does not work on 8 messages at once", app.Web)
			}
			for server, option := range map[string]string{"gunicorn": "--timeout 0", "php": "max_execution_time=0"} {
				if strings.Contains(app.Web, server) && !strings.Contains(app.Web, option) {
					t.Errorf("%s kills jobs of more than 30 seconds", app.Web)
				}
			}
		})
	}
}

func TestRecognize(t *testing.T) {
	t.Parallel()
	const venv = "python3 -m venv .venv, .venv/bin/pip install"
	const flaskApp = "app = Flask(__name__)\n"
	for name, c := range map[string]struct {
		files                []string
		platform, web, first string
	}{
		"npm start": {[]string{"package.json", `{"scripts": {"start": "node x"}, "dependencies": {"a": "1"}}`},
			"Node.js", "npm run start", "npm install"},
		"packages installed": {[]string{"package.json", `{"scripts": {"start": "x"}, "dependencies": {"a": "1"}}`,
			"node_modules/a/x", ""}, "Node.js", "npm run start", ""},
		"main of package.json": {[]string{"package.json", `{"main": "./lib/a.js"}`, "lib/a.js", "", "app.js", ""},
			"Node.js", "node lib/a.js", ""},
		"main outside the folder": {[]string{"package.json", `{"main": "../a.js"}`, "app.js", ""},
			"Node.js", "node app.js", ""},
		"main with a command": {[]string{"package.json", `{"main": "a;b.js"}`, "a;b.js", "", "app.js", ""},
			"Node.js", "node app.js", ""},
		"a script alone": {[]string{"server.js", ""}, "Node.js", "node server.js", ""},
		"Django": {[]string{"manage.py", `os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")`},
			"Django", "python3 manage.py runserver --noreload 127.0.0.1:$PORT", ""},
		"Django on gunicorn": {[]string{"requirements.txt", "django\ngunicorn==23\n", "manage.py",
			`os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')`},
			"Django", "gunicorn --bind 127.0.0.1:$PORT --threads 8 --timeout 0 --preload shop.wsgi", venv + " -r requirements.txt"},
		"FastAPI": {[]string{"pyproject.toml", "", "main.py", "from fastapi import FastAPI\napi: FastAPI = FastAPI()\n"},
			"FastAPI", "uvicorn --host 127.0.0.1 --port $PORT main:api", venv + " ."},
		"Flask": {[]string{"requirements.txt", "flask\n", "app.py", "import flask\napp = flask.Flask(__name__)\n"},
			"Flask", "flask --app app:app run --port $PORT", venv + " -r requirements.txt"},
		"Flask on gunicorn": {[]string{"requirements.txt", "Flask\nGunicorn\n", "wsgi.py", "web = Flask(__name__)\n"},
			"Flask", "gunicorn --bind 127.0.0.1:$PORT --threads 8 --timeout 0 --preload wsgi:web", venv + " -r requirements.txt"},
		"Flask in .venv": {[]string{"requirements.txt", "flask\n", "app.py", flaskApp, ".venv/pyvenv.cfg", ""},
			"Flask", "flask --app app:app run --port $PORT", ""},
		"gunicorn in venv": {[]string{"app.py", flaskApp, "venv/pyvenv.cfg", "", "venv/bin/gunicorn", ""},
			"Flask", "gunicorn --bind 127.0.0.1:$PORT --threads 8 --timeout 0 --preload app:app", ""},
		"uv": {[]string{"pyproject.toml", "", "uv.lock", "", "app.py", flaskApp, ".venv/pyvenv.cfg", ""},
			"Flask", "uv run flask --app app:app run --port $PORT", ""},
		"uv without a lock": {[]string{"pyproject.toml", "[tool.uv]\ndependencies = ['gunicorn']\n", "app.py", flaskApp},
			"Flask", "uv run gunicorn --bind 127.0.0.1:$PORT --threads 8 --timeout 0 --preload app:app", ""},
		"poetry": {[]string{"pyproject.toml", "[tool.poetry]\n", "app.py", flaskApp},
			"Flask", "poetry run flask --app app:app run --port $PORT", "poetry install"},
		"pipenv": {[]string{"Pipfile", "gunicorn = '*'\n", "app.py", flaskApp},
			"Flask", "pipenv run gunicorn --bind 127.0.0.1:$PORT --threads 8 --timeout 0 --preload app:app", "pipenv install"},
		"pnpm": {[]string{"package.json", `{"scripts": {"start": "x"}, "dependencies": {"a": "1"}}`, "pnpm-lock.yaml", ""},
			"Node.js", "pnpm run start", "pnpm install"},
		"lock files of several managers": {[]string{"package.json", `{"scripts": {"start": "x"}, "dependencies": {"a": "1"}}`,
			"yarn.lock", "", "bun.lock", "", "pnpm-lock.yaml", ""}, "Node.js", "pnpm run start", "pnpm install"},
		"bun": {[]string{"package.json", `{"dependencies": {"express": "5"}}`, "index.js", "", "bun.lock", ""},
			"Express", "bun index.js", "bun install"},
		"yarn named by package.json": {[]string{"package.json",
			`{"packageManager": "yarn@4.1.0", "scripts": {"start": "x"}, "dependencies": {"a": "1"}}`, "pnpm-lock.yaml", ""},
			"Node.js", "yarn run start", "yarn install"},
		"plain Python": {[]string{"main.py", "import http.server\n"}, "Python", "python3 main.py", ""},
		"Rails": {[]string{"Gemfile", "", "bin/rails", "", "config.ru", ""},
			"Rails", "RAILS_MAX_THREADS=8 bin/rails server --binding 127.0.0.1 --port $PORT", "bundle install"},
		"Rack on puma": {[]string{"Gemfile", `gem "puma"`, "config.ru", ""},
			"Ruby", "bundle exec puma --threads 8 --bind tcp://127.0.0.1:$PORT", "bundle install"},
		"Rack": {[]string{"config.ru", ""},
			"Ruby", "bundle exec rackup --host 127.0.0.1 --port $PORT", ""},
		"Go": {[]string{"go.mod", "module x", "main.go", "// x\npackage main\n"},
			"Go", "go run .", ""},
		"Go below cmd": {[]string{"go.mod", "", "x.go", "package x\n", "cmd/x/main.go", "package main\n"},
			"Go", "go run ./cmd/x", ""},
		"PHP": {[]string{"index.php", ""}, "PHP", "PHP_CLI_SERVER_WORKERS=8 php -d max_execution_time=0 -S 127.0.0.1:$PORT", ""},
		"PHP with composer": {[]string{"composer.json", "{}", "public/index.php", ""},
			"PHP", "PHP_CLI_SERVER_WORKERS=8 php -d max_execution_time=0 -S 127.0.0.1:$PORT -t public", "composer install"},
		"Laravel": {[]string{"artisan", "", "composer.json", "{}", "public/index.php", ""},
			"Laravel", "PHP_CLI_SERVER_WORKERS=8 php -d max_execution_time=0 -S 127.0.0.1:$PORT -t public", "composer install"},
		"Spring Boot with Maven": {[]string{"pom.xml", "<groupId>org.springframework.boot</groupId>", "mvnw", ""},
			"Spring Boot", "java -Dserver.port=$PORT -jar target/*.jar", "./mvnw package"},
		"Spring Boot with Gradle": {[]string{"build.gradle", "id 'org.springframework.boot' version '4.0.0'"},
			"Spring Boot", "java -Dserver.port=$PORT -jar build/libs/*.jar", "gradle bootJar"},
		"a jar": {[]string{"app.jar", ""}, "Java", "java -Dserver.port=$PORT -jar app.jar", ""},
		"Maven": {[]string{"pom.xml", ""},
			"Java", "java -Dserver.port=$PORT -jar target/*.jar", "mvn package"},
		"Gradle": {[]string{"build.gradle.kts", "", "gradlew", ""},
			"Java", "java -Dserver.port=$PORT -jar build/libs/*.jar", "./gradlew build"},
		".NET": {[]string{"shop.csproj", ""},
			".NET", "dotnet run --urls http://127.0.0.1:$PORT", ""},
		"a Procfile":         {[]string{"Procfile", "web: x", "app.js", ""}, "an app", "", ""},
		"a Lambda function":  {[]string{"bootstrap", "#!/bin/sh", "Dockerfile", ""}, "a Lambda function", "", ""},
		"Docker and Node.js": {[]string{"Dockerfile", "", "app.js", ""}, "Node.js", "node app.js", ""},
	} {
		app, err := Recognize(folder(c.files...), false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if first := strings.Join(app.Before, ", "); app.Platform != c.platform || app.Web != c.web || first != c.first {
			t.Errorf("%s: %+v, want %s, %q after %q", name, app, c.platform, c.web, c.first)
		}
		if (app.Lambda != "") != (app.File == "bootstrap") || app.File == "" {
			t.Errorf("%s: %+v", name, app)
		}
	}
	listed := folder("requirements.txt", "flask\n", "app.py", flaskApp)
	if app, err := Recognize(listed, true); err != nil || app.Before != nil {
		t.Errorf("with its packages installed: %+v, %v", app, err)
	}
	for name, want := range map[string]error{
		"Dockerfile": errContainer, "compose.yaml": errContainer, "readme": errUnknown,
		"go.mod": errUnknown, "package.json": errUnknown, "composer.json": errUnknown} {
		if app, err := Recognize(folder(name, ""), false); !errors.Is(err, want) {
			t.Errorf("%s alone: %+v, %v; want %v", name, app, err, want)
		}
	}
}

// The note names PORT, or says that the app must accept POSTs without a token.
func TestAppsThatNeedAChangeHaveANote(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]string{
		"@csrf_exempt":            {"manage.py", `os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")`},
		"skip_forgery_protection": {"bin/rails", ""},
		"validateCsrfTokens":      {"artisan", "", "public/index.php", ""},
		"process.env.PORT":        {"server.js", "app.listen(3000)\n"},
	} {
		if app, err := Recognize(folder(files...), false); err != nil || !strings.Contains(app.Note, name) {
			t.Errorf("%s: %+v, %v", name, app, err)
		}
	}
	for name, files := range map[string][]string{
		"PORT is read":        {"server.js", "app.listen(process.env.PORT)\n"},
		"another script runs": {"package.json", `{"scripts": {"start": "next start"}}`, "index.js", "x.listen(1)\n"},
	} {
		if app, err := Recognize(folder(files...), false); err != nil || app.Note != "" {
			t.Errorf("%s: %+v, %v", name, app, err)
		}
	}
}

func TestFilesAreTaken(t *testing.T) {
	t.Parallel()
	for _, app := range []*App{{Web: "npm start"}, {Lambda: "./bootstrap"}} {
		for _, uncommented := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), "My shop (v2)")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range app.Files("My shop (v2)") {
				text := file.Text
				if uncommented {
					text = strings.ReplaceAll(text, "\n#", "\n")
					text = strings.ReplaceAll(text, "\n ", "\n# ")
					text = strings.ReplaceAll(text, "\nqueue_url", "\n#queue_url") // it makes max_retries useless
				}
				write(t, dir, file.Name, text)
			}
			b, err := bundle.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if app.Web != "" && (len(b.Processes) != 1 || b.Processes[0].Command != app.Web) {
				t.Errorf("the Procfile %v", b.Processes)
			}
			cfg, err := config.Load(config.Sources{Flags: map[string]string{"config": dir + "/tendril.yaml"},
				Environ: []string{"HOME=" + dir}, Bundle: b})
			if err != nil {
				t.Fatal(err)
			}
			named := cfg.Origin("name").Layer > config.FromBundle
			if cfg.Name != "My-shop--v2" || named != (uncommented || app.Lambda != "") ||
				len(cfg.Warnings) > 0 || cfg.IsSet("max-retries") != uncommented ||
				uncommented && cfg.MaxRetries != 5 || cfg.Queues[0].Lambda != app.Lambda {
				t.Errorf("name %q, warnings %v, max-retries %d", cfg.Name, cfg.Warnings, cfg.MaxRetries)
			}
		}
	}
	if got := environmentName("Überall/"); got != "berall" {
		t.Errorf("a name is %q", got)
	}
	if got := environmentName("..."); got != "app" {
		t.Errorf("a name is %q", got)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
