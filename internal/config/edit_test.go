package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func change(settings ...string) map[string]*string {
	set := map[string]*string{}
	for _, s := range settings {
		name, text, found := strings.Cut(s, "=")
		if set[name] = nil; found {
			set[name] = &text
		}
	}
	return set
}

func TestSettingsFileIsEdited(t *testing.T) {
	t.Parallel()
	const queues = "queues:\n  - name: a\n    http_path: /a\n  - url: https://sqs.eu-west-1.amazonaws.com/1/b\n"
	for _, c := range []struct {
		file string
		set  map[string]*string
		want string // the edited file, then the removed and added lines
	}{
		{"# mine\nhttp_path: /a # old\n", change("HttpPath=/b", "concurrency=5"),
			"# mine\nhttp_path: /b # old\nhttp_connections: 5\n--\n-2 http_path: /a # old\n+2 http_path: /b # old\n" +
				"+3 http_connections: 5\n"},
		{"sqsd:\n  HttpPath: /a\n", change("http-path=/b"),
			"sqsd:\n  HttpPath: /b\n--\n-2   HttpPath: /a\n+2   HttpPath: /b\n"},
		{"sqsd:\n  HttpPath: /a\nport: 1\n", change("http-path"), "port: 1\n--\n-1 sqsd:\n-2   HttpPath: /a\n"},
		{"console_token: 0123456789abcdef\n", change("console-token=fedcba9876543210"),
			"console_token: fedcba9876543210\n--\n-1 console_token: (hidden)\n+1 console_token: (hidden)\n"},
		{"console_token: |\n  0123456789abcdef\n", change("console-token"),
			"\n--\n-1 console_token: (hidden)\n-2 (hidden)\n"},
		{"http_path: /a?key=1\n", change("http-path=/b?key=2"),
			"http_path: /b?key=2\n--\n-1 http_path: /a?(hidden)\n+1 http_path: /b?(hidden)\n"},
		{"target: http://x:hunter2@h/\n", change("target"), "\n--\n-1 target: (hidden)\n"},
		{queues, change("http-path of a=/c", "max of b=3"),
			"queues:\n  - name: a\n    http_path: /c\n  - url: https://sqs.eu-west-1.amazonaws.com/1/b\n    max: 3\n--\n" +
				"-3     http_path: /a\n+3     http_path: /c\n+5     max: 3\n"},
	} {
		edited, err := EditFile(File{Path: "tendril.yaml", Data: []byte(c.file)}, c.set)
		if err != nil {
			t.Errorf("%q: %v", c.file, err)
			continue
		}
		got := string(edited.File.Data)
		if got == "" {
			got = "\n"
		}
		got += "--\n"
		for _, l := range edited.Lines {
			sign := "-"
			if l.Added {
				sign = "+"
			}
			got += fmt.Sprintf("%s%d %s\n", sign, l.Line, l.Text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got)\n%s", c.file, diff)
		}
	}
}

func TestEditsThatAreRefused(t *testing.T) {
	t.Parallel()
	const queues = "queues:\n  - name: a\n  - b\n"
	for _, c := range []struct {
		file, set, want string
	}{
		{"", "http-pth=/", "unknown option http-pth: did you mean http-path or HttpPath?"},
		{"", "config=x", "the settings file cannot name itself"},
		{queues, "queues=a", "the queues have their own settings in this file"},
		{queues, "http-path of b=/", "the queue b has no settings of its own in this file"},
		{queues, "http-path of c=/", "the queue c has no settings of its own in this file"},
		{queues, "http-connections of a=1", "http-connections is not a per-queue setting"},
		{queues, "http-pth of a=/", "unknown option http-pth: did you mean http-path or HttpPath?"},
		{queues, "name of a=c", "\"name of a\" cannot be changed by a command or in the console: it decides which queue this is"},
		{queues, "url of a=http://x/c", "\"url of a\" cannot be changed"},
		{"{http_path: /a}\n", "port=1", "this key cannot be changed without reformatting the file"},
		{"http_path: [\n", "port=1", "invalid YAML"},
		{"http_port: 80\n", "http-path=/", "this is a settings file of aws-sqsd, which tendril does not change"},
	} {
		_, err := EditFile(File{Path: "tendril.yaml", Data: []byte(c.file)}, change(c.set))
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Problems[0].Text, c.want) || wrong.Problems[0].Hint == "" {
			t.Errorf("%q, %s: %+v, want %q", c.file, c.set, err, c.want)
		}
	}
}

func TestFileInPlaceOfTheOneOnDisk(t *testing.T) {
	t.Parallel()
	dir := write(t, "tendril.yaml", "http_path: /disk\nport: 7\n")
	file := &File{Path: dir + "/tendril.yaml", Data: []byte("http_path: /edited\n")}
	cfg := mustLoad(t, Sources{Dir: dir, Environ: home(), File: file})
	if cfg.HTTPPath != "/edited" || cfg.Port != 5000 || cfg.ConfigFile != file.Path ||
		cfg.Origin("http-path").Where != file.Path+":1" {
		t.Errorf("path %s (%s), port %d, file %s", cfg.HTTPPath, cfg.Origin("http-path"), cfg.Port, cfg.ConfigFile)
	}
	file.Data = []byte("http_path: /a#b\n")
	_, err := Load(Sources{Dir: dir, Environ: home(), File: file})
	var wrong *Error
	if !errors.As(err, &wrong) || wrong.Problems[0].Option != "http-path" || wrong.Problems[0].Where != file.Path+":1" {
		t.Errorf("%+v", err)
	}
}

func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	got := map[string][]string{}
	for _, o := range Options() {
		if b := o.Block(); b != "" {
			got[b] = append(got[b], o.Label())
		}
		if o.Group == "" || o.Label() == "" || o.Label()[0] < 'A' || o.Label()[0] > 'Z' {
			t.Errorf("%s: topic %q, label %q", o.Name, o.Group, o.Label())
		}
	}
	want := map[string][]string{
		"Queue": {"Worker queue"},
		"Messages": {"HTTP path", "MIME type", "HTTP connections", "Visibility timeout",
			"Error visibility timeout"},
		"Advanced options": {"Connection timeout", "Inactivity timeout", "Retention period", "Max retries"},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(Blocks()) != len(want) || len(Topics()) < 10 {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name, want := range map[string]string{"console-tls-cert": "Console TLS cert", "rate": "Rate",
		"via-sns": "Via SNS"} {
		if o, _ := Lookup(name); o.Label() != want {
			t.Errorf("%s is called %q, want %q", name, o.Label(), want)
		}
	}
}
