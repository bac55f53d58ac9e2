package bundle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A name that ends in a slash is an empty folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"Procfile": "clock: tick\nweb: serve\n", "app.py": "", "static/x.css": ""})
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := &Bundle{Dir: dir, Processes: []Process{{"web", "serve", 2}, {"clock", "tick", 1}}}
	if diff := cmp.Diff(want, b); diff != "" {
		t.Error(diff)
	}
	if web, err := b.Web(); err != nil || web.Command != "serve" {
		t.Errorf("Web() = %v, %v", web, err)
	}
}

func TestOpenListsUnsupportedFiles(t *testing.T) {
	t.Parallel()
	b, err := Open(folder(t, map[string]string{
		"Procfile":                             "web: x",
		"cron.yaml":                            "",
		"cron.yml":                             "",
		"Buildfile":                            "",
		"env.yaml":                             "",
		"Dockerfile":                           "",
		".ebextensions/01-sqsd.config":         "",
		".ebextensions/02-wrong.yaml":          "",
		".ebextensions/README":                 "",
		".ebextensions/files/":                 "",
		".platform/hooks/predeploy/10-migrate": "",
		".platform/confighooks/postdeploy/x":   "",
		".platform/nginx/conf.d/":              "",
		".platform/notes.txt":                  "",
		"main.go":                              "",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range b.Unsupported {
		files = append(files, f.File)
		if f.What == "" || !strings.HasPrefix(f.String(), f.File+": ") {
			t.Errorf("%+v says nothing", f)
		}
	}
	want := []string{
		".ebextensions/02-wrong.yaml",
		".platform/confighooks/postdeploy/x", ".platform/hooks/predeploy/10-migrate", ".platform/nginx",
		".platform/notes.txt", "Dockerfile", "cron.yml",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	t.Run("no such folder", func(t *testing.T) {
		t.Parallel()
		_, err := Open(filepath.Join(t.TempDir(), "absent"))
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "absent: file does not exist") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a file", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct{ content, want string }{
			"x":       {"", "is an empty file"},
			"x.txt":   {"text", "is not a zip archive"},
			"x.zip":   {"text", "is named like a zip archive but is not one, or it is damaged"},
			"x.tgz":   {"\x1f\x8b\x08", "is an archive, but not a zip archive"},
			"tar.zip": {"\x1f\x8b\x08", "is an archive, but not a zip archive"},
		} {
			path := filepath.Join(folder(t, map[string]string{name: c.content}), name)
			want := path + " " + c.want +
				": name the folder of the app and its Procfile, or a zip archive of its content"
			if _, err := Open(path); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		}
	})
	t.Run("a bad Procfile, by the path that was given", func(t *testing.T) {
		t.Parallel()
		dir := folder(t, map[string]string{"Procfile": "web"})
		_, err := Open(dir)
		var bad *invalidError
		if !errors.As(err, &bad) || bad.Problems[0].Where != filepath.Join(dir, "Procfile")+":1" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a folder called Procfile", func(t *testing.T) {
		t.Parallel()
		_, err := Open(folder(t, map[string]string{"Procfile/": ""}))
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an endless Procfile", func(t *testing.T) {
		t.Parallel()
		_, err := Open(folder(t, map[string]string{"Procfile": strings.Repeat("web: x\n", 1<<20)}))
		if err == nil || !strings.Contains(err.Error(), "larger than 65536 bytes") {
			t.Errorf("got %v", err)
		}
	})
}

func TestWebAdvises(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no Procfile":    {map[string]string{"app.js": ""}, "has no Procfile with a process"},
		"wrong spelling": {map[string]string{"procfile": "web: x"}, "has no Procfile with a process"},
		"no web": {map[string]string{"Procfile": "clock: a\nWeb: b"},
			`has no process "web", only clock, Web: the process that gets the messages must be called "web"`},
		"an empty one":    {map[string]string{"Procfile": "# later"}, "has no Procfile with a process"},
		"the way out too": {map[string]string{}, "add the command after --"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := Open(folder(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = b.Web(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		"/srv/thumbnails":             "thumbnails",
		"/srv/my app":                 "my-app",
		"/srv/über.app":               "ber-app",
		"/":                           "",
		"/srv/...":                    "",
		"/" + strings.Repeat("n", 90): strings.Repeat("n", 64),
	} {
		if got := (&Bundle{Dir: dir}).Name(); got != want {
			t.Errorf("the name of %s is %q, want %q", dir, got, want)
		}
	}
}
