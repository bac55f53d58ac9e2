package deliver

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	o, _, err := Options{Target: "http://localhost"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if o.Path != "/" || o.MimeType != "application/json" || o.HeaderBudget != 8192 ||
		o.maxBody != 65536 ||
		o.ConnectTimeout != 5*time.Second || o.InactivityTimeout != 180*time.Second || o.Deadline != 0 ||
		o.KeepAlive != time.Second ||
		codesOf(o.SuccessCodes) != "200" {
		t.Errorf("%+v", o)
	}
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		raw  string
		want target
	}{
		{"http://localhost", target{network: "tcp", dials: []string{"127.0.0.1:80", "[::1]:80"}, host: "localhost"}},
		{"http://localhost:80/",
			target{network: "tcp", dials: []string{"127.0.0.1:80", "[::1]:80"}, host: "localhost", path: "/"}},
		{"http://127.0.0.1:5000/worker",
			target{network: "tcp", dials: []string{"127.0.0.1:5000"}, host: "localhost:5000", path: "/worker"}},
		{"http://[::1]:5000", target{network: "tcp", dials: []string{"[::1]:5000"}, host: "localhost:5000"}},
		{"https://127.0.0.1", target{network: "tcp", dials: []string{"127.0.0.1:443"}, host: "localhost", name: "127.0.0.1"}},
		{"https://localhost:80",
			target{network: "tcp", dials: []string{"127.0.0.1:80", "[::1]:80"}, host: "localhost:80", name: "localhost"}},
		{"http://app.internal", target{network: "tcp", dials: []string{"app.internal:80"}, host: "app.internal"}},
		{"http://app_1.internal:8080",
			target{network: "tcp", dials: []string{"app_1.internal:8080"}, host: "app_1.internal:8080"}},
		{"https://app.internal:443",
			target{network: "tcp", dials: []string{"app.internal:443"}, host: "app.internal", name: "app.internal"}},
		{"http://AZaz09.-_:1", target{network: "tcp", dials: []string{"AZaz09.-_:1"}, host: "AZaz09.-_:1"}},
		{"http://app:65535", target{network: "tcp", dials: []string{"app:65535"}, host: "app:65535"}},
		{"unix:///" + strings.Repeat("x", 102),
			target{network: "unix", dials: []string{"/" + strings.Repeat("x", 102)}, host: "localhost"}},
		{"http://10.0.0.7:81", target{network: "tcp", dials: []string{"10.0.0.7:81"}, host: "10.0.0.7:81"}},
		{"http://[fd00::7]", target{network: "tcp", dials: []string{"[fd00::7]:80"}, host: "[fd00::7]"}},
		{"unix:///run/app.sock", target{network: "unix", dials: []string{"/run/app.sock"}, host: "localhost"}},
		{"unix:/run/app.sock", target{network: "unix", dials: []string{"/run/app.sock"}, host: "localhost"}},
		{"http+unix:///run/app.sock", target{network: "unix", dials: []string{"/run/app.sock"}, host: "localhost"}},
		{"http+unix://%2Frun%2Fapp.sock/jobs",
			target{network: "unix", dials: []string{"/run/app.sock"}, host: "localhost", path: "/jobs"}},
		{"http+unix://%2Frun%2Fapp.sock", target{network: "unix", dials: []string{"/run/app.sock"}, host: "localhost"}},
	} {
		got, err := parseTarget(test.raw)
		if err != nil {
			t.Errorf("%s: %v", test.raw, err)
			continue
		}
		if diff := cmp.Diff(&test.want, got, cmp.AllowUnexported(target{})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.raw, diff)
		}
	}
}

func TestUserNameOfATargetIsHidden(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"http://user:secret@host/a": "http://***@host/a", "http://@host": "http://***@host", "http://host": "http://host",
		"@host": "@host",
	} {
		if got := hideUser(raw); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
	if _, err := NewClient(&Options{Target: "unix:///run/a b.sock"}); err != nil {
		t.Errorf("a blank in the path of a socket: %v", err)
	}
}

func TestNamesThatAreShown(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"AZaz09._:$-": true, strings.Repeat("x", 100): true, strings.Repeat("x", 101): false, "": false, "a b": false,
		"a/b": false, "a;b": false, "a@b": false, "a{b": false, "a`b": false, "ä": false,
	} {
		if got := isPlainName(name); got != want {
			t.Errorf("%q is shown: %v, want %v", name, got, want)
		}
	}
	for host, want := range map[string]bool{"AZaz09.-_": true, "a/b": false, "a:b": false, "a@b": false, "a[b": false,
		"a`b": false, "a{b": false} {
		if got := isHostName(host); got != want {
			t.Errorf("%q is the name of a host: %v, want %v", host, got, want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	type options = Options
	for _, test := range []struct {
		opts options
		says string
	}{
		{options{}, "use a URL such as http://127.0.0.1:8080/"},
		{options{Target: "localhost:5000"}, "use a URL such as"},
		{options{Target: "ftp://localhost"}, "use a URL such as"},
		{options{Target: "http://"}, "use a URL such as"},
		{options{Target: "http:///path"}, "use a URL such as"},
		{options{Target: "http://host name/"}, "use a URL such as"},
		{options{Target: "http://user:secret@localhost"}, "remove it"},
		{options{Target: "http://localhost?a=b"}, "put the query into the HTTP path"},
		{options{Target: "http://localhost#a"}, "put the query into the HTTP path"},
		{options{Target: "http://localhost:0"}, "from 1 to 65535"},
		{options{Target: "http://localhost:65536"}, "from 1 to 65535"},
		{options{Target: "http://0.0.0.0:80"}, "write 127.0.0.1"},
		{options{Target: "http://[::]:80"}, "write 127.0.0.1"},
		{options{Target: "http://169.254.169.254/latest"}, "never posted to"},
		{options{Target: "http://[fe80::1]"}, "never posted to"},
		{options{Target: "http://bücher.example"}, "xn--"},
		{options{Target: "unix://"}, "unix:///run/app.sock"},
		{options{Target: "unix:app.sock"}, "unix:///run/app.sock"},
		{options{Target: "unix://app.sock"}, "unix:///run/app.sock"},
		{options{Target: "unix://%zz"}, "unix:///run/app.sock"},
		{options{Target: "unix:///run/a\x7fb"}, "unix:///run/app.sock"},
		{options{Target: "unix:///" + strings.Repeat("x", 103)}, "at most 103 bytes"},
		{options{Target: "http://localhost/a", Path: "/b"}, "set only one of them"},
		{options{Target: "http://localhost", Path: "//b"}, "use a path such as /worker"},
		{options{Target: "http://localhost", Path: "/../b"}, "use a path such as /worker"},
		{options{Target: "http://localhost", Path: "http://evil"}, "use a path such as /worker"},
		{options{Target: "http://localhost", MimeType: "a\r\nb"}, "MIME type"},
		{options{Target: "http://localhost", QueueName: "a\nb"}, "queue name"},
		{options{Target: "http://localhost", Version: "\x00"}, "version"},
	} {
		_, err := NewClient(&test.opts)
		if err == nil {
			t.Errorf("%+v is accepted", test.opts)
		} else if !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v\ndoes not say %q, or too much", err, test.says)
		}
	}
	if _, err := NewClient(nil); err == nil {
		t.Error("no options are accepted")
	}
}

func TestPathOfTheSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ target, path, want string }{
		{"http://localhost", "", "/"},
		{"http://localhost/", "", "/"},
		{"http://localhost/", "/worker", "/worker"},
		{"http://localhost", "worker/queue", "/worker/queue"},
		{"http://localhost/worker", "", "/worker"},
		{"http://localhost/a%20b", "", "/a%20b"},
		{"http://localhost", "/worker?key=1", "/worker?key=1"},
	} {
		o, _, err := Options{Target: test.target, Path: test.path}.withDefaults()
		if err != nil || o.Path != test.want {
			t.Errorf("target %q, path %q: %+v, %v; want %q", test.target, test.path, o, err, test.want)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"http://localhost:5000/a", "https://[::1]", "unix:///a", "http+unix://%2Fa/b",
		"http://a@b", "http://169.254.0.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := parseTarget(raw)
		if err != nil {
			return
		}
		if len(got.dials) == 0 || got.host == "" || strings.ContainsAny(got.host, " \r\n/@") || hasControl(got.host) {
			t.Errorf("%q: %+v", raw, got)
		}
		for _, dialled := range got.dials {
			if a, err := netip.ParseAddrPort(dialled); got.network == "tcp" && err == nil && refuseAddress(a.Addr()) != nil {
				t.Errorf("%q dials %s", raw, dialled)
			}
		}
	})
}
