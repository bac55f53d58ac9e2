package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/internal/bundle"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	named := filepath.Join(write(t, "named.yaml", "name: named\n"), "named.yaml")
	variable := filepath.Join(write(t, "variable.yaml", "name: variable\n"), "variable.yaml")
	xdg := write(t, "tendril/config.yaml", "name: xdg\n")
	userHome := write(t, ".config/tendril/config.yaml", "name: home\n")
	src := Sources{
		Flags:      map[string]string{"config": named},
		Environ:    []string{"HOME=" + userHome, "XDG_CONFIG_HOME=" + xdg, "TENDRIL_CONFIG=" + variable},
		Dir:        write(t, "tendril.yaml", "name: here\n"),
		SystemFile: filepath.Join(write(t, "config.yaml", "name: system\n"), "config.yaml"),
	}
	step := func(want string, from Layer) {
		t.Helper()
		cfg := mustLoad(t, src)
		if cfg.Name != want || cfg.Origin("config").Layer != from || cfg.Origin("name").Where != cfg.ConfigFile+":1" {
			t.Errorf("read %s (%s, %s), want %s", cfg.Name, cfg.Origin("config"), cfg.Origin("name"), want)
		}
	}
	step("named", fromFlag)
	src.Flags = nil
	step("variable", fromEnvironment)
	src.Environ = src.Environ[:2]
	step("here", Default)
	src.Dir = t.TempDir()
	step("xdg", Default)
	src.Environ = src.Environ[:1]
	step("home", Default)
	src.Environ = home()
	step("system", Default)
	src.SystemFile = filepath.Join(t.TempDir(), "absent")
	if cfg := mustLoad(t, src); cfg.ConfigFile != "" || cfg.Origin("config") != (Origin{}) {
		t.Errorf("read %s, %s; want no file", cfg.ConfigFile, cfg.Origin("config"))
	}
}

func TestUnreadableFiles(t *testing.T) {
	t.Parallel()
	dir := write(t, "tendril.yaml/folder", "")
	long := filepath.Join(write(t, "long.yaml", strings.Repeat("# long\n", 1<<20)), "long.yaml")
	secret := filepath.Join(write(t, "secret.yaml", "name: x\n"), "secret.yaml")
	if err := os.Chmod(secret, 0); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		src  Sources
		want string
	}{
		"absent and named": {Sources{Flags: map[string]string{"config": "/absent/x.yaml"}},
			"/absent/x.yaml: settings file not found\n  use --config with"},
		"absent, in a variable": {Sources{Environ: []string{"TENDRIL_CONFIG=/absent/x.yaml"}},
			"/absent/x.yaml: settings file not found"},
		"a folder, named": {Sources{Flags: map[string]string{"config": dir}},
			dir + ": reading the settings file: not a regular file"},
		"a folder, found": {Sources{Dir: dir},
			filepath.Join(dir, "tendril.yaml") + ": reading the settings file: not a regular file"},
		"below a file": {Sources{Flags: map[string]string{"config": long + "/x"}},
			"reading the settings file: not a directory"},
		"far too long": {Sources{Flags: map[string]string{"config": long}},
			long + ": the file is larger than 65536 bytes"},
		"forbidden": {Sources{Flags: map[string]string{"config": secret}},
			secret + ": reading the settings file: permission denied"},
		"a name with a NUL byte": {Sources{Flags: map[string]string{"config": "a\x00b"}},
			"reading the settings file: invalid argument"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "forbidden" && os.Geteuid() == 0 {
				t.Skip("root may read every file")
			}
			c.src.Environ = append(c.src.Environ, home()...)
			_, err := Load(c.src)
			var bad *Error
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	below := Sources{Dir: long, Environ: home(), SystemFile: long + "/config.yaml"}
	if _, err := Load(below); err != nil {
		t.Errorf("a search path below a file is no place to look: %v", err)
	}
}

func TestFileBesideTheApp(t *testing.T) {
	t.Parallel()
	dir := write(t, "tendril.yaml", "http_path: /app\n")
	app, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	apart := mustLoad(t, Sources{Bundle: app, Environ: home()})
	if apart.HTTPPath != "/" || len(apart.Warnings) != 1 ||
		apart.Warnings[0].Where != filepath.Join(dir, "tendril.yaml") ||
		!strings.Contains(apart.Warnings[0].Text, "ignored") {
		t.Errorf("path %s, warnings %v", apart.HTTPPath, apart.Warnings)
	}
	for name, src := range map[string]Sources{
		"in the working folder": {Bundle: app, Environ: home(), Dir: dir},
		"named": {Bundle: app, Environ: home(),
			Flags: map[string]string{"config": filepath.Join(dir, "tendril.yaml")}},
	} {
		if cfg := mustLoad(t, src); cfg.HTTPPath != "/app" || len(cfg.Warnings) > 0 {
			t.Errorf("%s: path %s, warnings %v", name, cfg.HTTPPath, cfg.Warnings)
		}
	}
}

func TestDaemonFileRule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, text string
		found      bool
		daemon     bool
		want       string
	}{
		"by its folder":        {file: "aws-sqsd.d/default.yaml", text: "http_path: /a\n", daemon: true},
		"by a key":             {file: "x.yaml", text: "http_path: /a\nhttp_port: 80\n", daemon: true},
		"neither":              {file: "default.yaml", text: "http_path: /a\n"},
		"neither, unknown key": {file: "default.yaml", text: "max_cats: 5\n", want: "max_cats is not an option"},
		"its key in our own file": {file: "tendril.yaml", text: "http_port: 80\n", found: true,
			want: "http_port is a key of aws-sqsd's own file\n  use target: http://HOST:PORT"},
		"a key below sqsd is not": {file: "x.yaml", text: "sqsd:\n  http_port: 80\n",
			want: "http_port is not an option of Elastic Beanstalk's"},
		"nothing in it, its folder": {file: "aws-sqsd.d/default.yaml", text: "", daemon: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, c.file, c.text)
			src := Sources{Environ: home(), Dir: dir}
			if !c.found {
				src.Flags = map[string]string{"config": filepath.Join(dir, c.file)}
			}
			cfg, err := Load(src)
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "" && cfg.DaemonFile() != c.daemon:
				t.Errorf("taken for a file of aws-sqsd: %v", cfg.DaemonFile())
			}
		})
	}
}

func TestFoundFileMustBeTrusted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(dir, file string) error
		root   bool
		want   string
	}{
		"own": {change: func(string, string) error { return nil }},
		"for everybody": {change: func(_, file string) error {
			return os.Chmod(file, 0o666)
		}, want: "FILE: the settings file is not trusted: every user can write to it (mode 0666)\n" +
			"  type 'chmod go-w FILE', or name the file with --config=FILE or TENDRIL_CONFIG"},
		"in a folder for all": {change: func(dir, _ string) error {
			return os.Chmod(dir, 0o777)
		}, want: "FILE: the settings file is not trusted: it is in the folder DIR: every user can write to it (mode " +
			"0777)\n  type 'chmod go-w DIR', or"},
		"another user's": {change: func(_, file string) error {
			return os.Chown(file, 4_000_001, 0)
		}, root: true, want: "FILE: the settings file is not trusted: it belongs to user 4000001\n" +
			"  type 'chown root FILE', or"},
		"in another user's folder": {change: func(dir, _ string) error {
			return os.Chown(dir, 4_000_001, 0)
		}, root: true, want: "FILE: the settings file is not trusted: it is in the folder DIR: it belongs to user " +
			"4000001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.root && os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			dir := write(t, "tendril.yaml", "lambda: ./function\n")
			file := filepath.Join(dir, "tendril.yaml")
			if err := c.change(dir, file); err != nil {
				t.Fatal(err)
			}
			_, err := Load(Sources{Dir: dir, Environ: home()})
			want := strings.NewReplacer("FILE", file, "DIR", dir).Replace(c.want)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
				t.Errorf("found: %v\nwant   %s", err, want)
			}
			elsewhere := write(t, "config.yaml", "")
			for place, src := range map[string]Sources{
				"the user's": {Environ: []string{"HOME=/absent", "XDG_CONFIG_HOME=" + linked(t, "tendril/config.yaml", file)},
					Dir: elsewhere},
				"the system": {Environ: home(), Dir: elsewhere, SystemFile: file},
			} {
				if _, err := Load(src); (err == nil) != (c.want == "") {
					t.Errorf("found as %s: %v", place, err)
				}
			}
			if _, err := Load(Sources{Dir: dir, Environ: home(), Flags: map[string]string{"config": file}}); err != nil {
				t.Errorf("named: %v", err)
			}
		})
	}
}

func linked(t *testing.T, name, file string) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755),
		os.Symlink(file, filepath.Join(dir, name))); err != nil {
		t.Fatal(err)
	}
	return dir
}
