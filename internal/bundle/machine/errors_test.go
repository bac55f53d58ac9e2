package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/bundle"
	"tendril/internal/testing/testpeer"
)

func TestPlanDescribesEachStep(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	steps := Plan(&bundle.Machine{Configs: []bundle.MachineConfig{{
		Packages: []bundle.Package{{Manager: "apt", Name: "git", Versions: []string{"1", "2"}}},
		Groups:   []bundle.Group{{Name: "g", GID: "45"}},
		Users:    []bundle.User{{Name: "u", UID: "50"}, {Name: "v"}},
		Sources:  []bundle.Source{{Dir: "/opt/app", URL: "https://example.com/app.zip"}},
		Files: []bundle.MachineFile{{Path: "/a", Content: "secret"}, {Path: "/b", IsLink: true, Content: "/a", HasMode: true},
			{Path: "/c", Source: "https://example.com/c", HasMode: true, Mode: 0o755 | fs.ModeSetuid},
			{Path: "/d", HasMode: true, Mode: 0o700 | fs.ModeSetgid | fs.ModeSticky, Owner: "root"},
			{Path: "/e", Owner: "root", Group: "adm"}, {Path: "/f", Group: "adm"}},
		Commands: []bundle.Command{{Name: "01", Shell: "make"}},
		Services: []bundle.Service{{Name: "s", Enabled: &yes, Running: &no}, {Name: "t", Enabled: &no, Running: &yes,
			RestartFor: []string{"files /a", "packages apt git"}}},
	}}})
	var got []string
	for _, s := range steps {
		got = append(got, s.Title()+": "+s.Text)
	}
	want := []string{"packages apt git: 1, 2", "groups g: gid 45", "users u: uid 50", "users v: ",
		"sources /opt/app: from https://example.com/app.zip", "files /a: 6 bytes", "files /b: link to /a",
		"files /c: from https://example.com/c, mode 4755", "files /d: 0 bytes, mode 3700, owner root",
		"files /e: 0 bytes, owner root:adm", "files /f: 0 bytes, owner :adm", "commands 01: make",
		"services s: enabled, stopped", "services t: disabled, running, restarted for files /a, packages apt git"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestStepFailsIfItsProgramFails(t *testing.T) {
	t.Parallel()
	yes := true
	pkg := func(manager string) bundle.MachineConfig {
		return bundle.MachineConfig{Packages: []bundle.Package{{Manager: manager, Name: "a"}}}
	}
	svc := func(s bundle.Service) bundle.MachineConfig {
		return bundle.MachineConfig{Services: []bundle.Service{s}}
	}
	enabled := bundle.Service{Name: "s", IsSystemd: true, Enabled: &yes}
	started := bundle.Service{Name: "s", IsSystemd: true, Running: &yes}
	for fails, c := range map[string]struct {
		config bundle.MachineConfig
		err    string
	}{
		"apt-get -q -y update":         {pkg("apt"), "apt-get -q -y: exit status 1"},
		"apt-get -q -y install a":      {pkg("apt"), "apt-get install: exit status 1"},
		"gem install --no-document a":  {pkg("rubygems"), "gem install --no-document: exit status 1"},
		"nothing, without the manager": {pkg("brew"), "unknown package manager brew"},
		"groupadd -r g":                {bundle.MachineConfig{Groups: []bundle.Group{{Name: "g"}}}, "groupadd -r g: exit"},
		"useradd -M -r --shell /bin/false u": {bundle.MachineConfig{Users: []bundle.User{{Name: "u"}}},
			"useradd -M -r: exit"},
		"systemctl enable s": {svc(enabled), "systemctl enable s"},
		"systemctl start s":  {svc(started), "systemctl start s"},
		"nothing, sysvinit cannot enable it": {svc(bundle.Service{Name: "init", Enabled: &yes}),
			"neither chkconfig nor update-rc.d"},
	} {
		system := &fakeSystem{has: []string{"systemctl", "/etc/init.d/init"}, fails: fails}
		outcomes, err := apply(t, system, c.config)
		if err == nil || !strings.Contains(err.Error(), c.err) || len(outcomes) > 0 {
			t.Errorf("%s: %q, %v; want %q", fails, outcomes, err, c.err)
		}
		if n := len(system.did); !strings.HasPrefix(fails, "nothing") && (n == 0 || system.did[n-1] != fails) {
			t.Errorf("%s: it did %q", fails, system.did)
		}
	}
}

func TestUserInAllGroupsIsNotChanged(t *testing.T) {
	t.Parallel()
	system := &fakeSystem{answers: map[string]string{"getent passwd u": "u:x:50:50::/:/bin/sh", "id -Gn u": "u g h"}}
	outcomes, err := apply(t, system, bundle.MachineConfig{Users: []bundle.User{{Name: "u", UID: "50",
		Groups: []string{"h", "g"}}}})
	if err != nil || len(system.did) > 0 || !slices.Equal(outcomes, []string{"users u: unchanged"}) {
		t.Errorf("%q, %v; it did %q", outcomes, err, system.did)
	}
	system = &fakeSystem{answers: map[string]string{"getent group g": "g"}}
	_, err = apply(t, system, bundle.MachineConfig{Groups: []bundle.Group{{Name: "g", GID: "45"}}})
	if err == nil {
		t.Error("an entry without a number is taken for the group 45")
	}
}

func TestSystemdReloadsChangedUnitsBeforeTheFirstService(t *testing.T) {
	t.Parallel()
	yes := true
	steps := Plan(&bundle.Machine{Configs: []bundle.MachineConfig{{Services: []bundle.Service{
		{Name: "s", IsSystemd: true, Running: &yes}, {Name: "t", IsSystemd: true, Running: &yes}}}}})
	for changed, want := range map[string][]string{
		"files /etc/systemd/system/s.service": {"systemctl daemon-reload", "systemctl start s", "systemctl start t"},
		"files /etc/nginx.conf":               {"systemctl start s", "systemctl start t"},
	} {
		system := &fakeSystem{has: []string{"systemctl"}}
		a := NewApplier(system, steps)
		a.changed = []string{changed}
		for i := range steps {
			if _, err := a.Apply(t.Context(), &steps[i]); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(system.did, want) {
			t.Errorf("%s: it did %q, want %q", changed, system.did, want)
		}
	}
	system := &fakeSystem{has: []string{"systemctl"}, fails: "systemctl daemon-reload"}
	a := NewApplier(system, steps)
	a.changed = []string{"files /etc/systemd/system/s.service"}
	if _, err := a.Apply(t.Context(), &steps[0]); err == nil || len(system.did) != 1 {
		t.Errorf("started though its unit is not read: %q, %v", system.did, err)
	}
}

func TestSystemdReloadsUnitsOfALaterConfigurationFile(t *testing.T) {
	t.Parallel()
	yes := true
	service := func(name string) bundle.MachineConfig {
		return bundle.MachineConfig{Services: []bundle.Service{{Name: name, IsSystemd: true, Running: &yes}}}
	}
	steps := Plan(&bundle.Machine{Configs: []bundle.MachineConfig{service("s"), service("t"), service("u")}})
	system := &fakeSystem{has: []string{"systemctl"}}
	a := NewApplier(system, steps)
	for i, changed := range []string{"files /etc/systemd/system/s.service", "files /etc/systemd/system/t.service", "files /etc/u"} {
		a.changed = append(a.changed, changed)
		if _, err := a.Apply(t.Context(), &steps[i]); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"systemctl daemon-reload", "systemctl start s", "systemctl daemon-reload", "systemctl start t",
		"systemctl start u"}
	if !slices.Equal(system.did, want) {
		t.Errorf("it did %q, want %q", system.did, want)
	}
}

func TestFilesGetTheirOwner(t *testing.T) {
	t.Parallel()
	// In a container, the user database may lack the current user.
	uid, gid := strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid())
	owner, group := uid, gid
	if u, err := user.LookupId(uid); err == nil {
		owner = u.Username
	}
	if g, err := user.LookupGroupId(gid); err == nil {
		group = g.Name
	}
	owned := func(path string) string {
		t.Helper()
		is, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		stat := is.Sys().(*syscall.Stat_t)
		return fmt.Sprintf("%d:%d %s", stat.Uid, stat.Gid, is.Mode().Perm())
	}
	dir := t.TempDir()
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	write := func(f bundle.MachineFile, want Outcome) {
		t.Helper()
		if got, err := NewApplier(&fakeSystem{}, nil).file(t.Context(), &f); err != nil || got != want {
			t.Errorf("%+v: %s, %v; want %s", f, got, err, want)
		}
	}
	mine := uid + ":" + gid
	write(bundle.MachineFile{Path: path, Content: "x", Owner: owner, Group: group, Mode: 0o640, HasMode: true},
		Changed)
	write(bundle.MachineFile{Path: path, Content: "x", Owner: uid, Group: gid}, unchanged)
	write(bundle.MachineFile{Path: link, IsLink: true, Content: "file", Owner: owner, Mode: 0o600}, Changed)
	if got := owned(path); got != mine+" -rw-------" {
		t.Errorf("the file, after a relative link with a mode, is %s", got)
	}
	if os.Getuid() != 0 {
		t.Skip("only root can change owners")
	}
	const other = 12345
	text := strconv.Itoa(other)
	write(bundle.MachineFile{Path: path, Content: "x", Owner: text, Mode: 0o755, HasMode: true}, Changed)
	write(bundle.MachineFile{Path: link, IsLink: true, Content: "file", Group: text, Mode: 0o755}, Changed)
	write(bundle.MachineFile{Path: link, IsLink: true, Content: "file", Group: text, Mode: 0o755}, unchanged)
	if is, want := owned(path), text+":"+gid+" -rwxr-xr-x"; is != want {
		t.Errorf("the file is %s, want %s", is, want)
	}
	if is, want := owned(link), uid+":"+text; !strings.HasPrefix(is, want) {
		t.Errorf("the link is %s, want %s", is, want)
	}
	write(bundle.MachineFile{Path: path, Content: "y"}, Changed)
	if is, want := owned(path), text+":"+gid+" -rwxr-xr-x"; is != want {
		t.Errorf("the new version is %s, want %s", is, want)
	}
}

func TestFileThatCannotBeKeptIsNotReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(path, []byte("old"), 0o644), os.MkdirAll(path+".bak/x", 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, f := range []bundle.MachineFile{{Path: path, Content: "new"}, {Path: path, IsLink: true, Content: "/etc"},
		{Path: filepath.Join(path, "below", "x"), Content: "a file in the place of a folder"}} {
		if got, err := NewApplier(&fakeSystem{}, nil).file(t.Context(), &f); err == nil {
			t.Errorf("%+v: %s", f, got)
		}
	}
	if is := show(t, path); is != "-rw-r--r-- old" {
		t.Errorf("the file is %q", is)
	}
	if err := os.RemoveAll(path + ".bak"); err != nil {
		t.Fatal(err)
	}
	f := bundle.MachineFile{Path: path, IsLink: true, Content: "elsewhere", Mode: 0o644}
	if _, err := NewApplier(&fakeSystem{}, nil).file(t.Context(), &f); err != nil {
		t.Fatal(err)
	}
	if is, bak := show(t, path), show(t, path+".bak"); is != "-> elsewhere" || bak != "-rw-r--r-- old" {
		t.Errorf("a link in the place of a file: %q, %q kept", is, bak)
	}
}

func TestRedirectsAreFollowedAFewTimes(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://example.invalid/", http.StatusFound)
			return
		}
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || n == 0 {
			fmt.Fprint(w, "content")
			return
		}
		http.Redirect(w, r, "/"+strconv.Itoa(n-1), http.StatusFound)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	for n, want := range map[int]string{1: "", maxRedirects - 1: "", maxRedirects: "too many redirects"} {
		f := bundle.MachineFile{Path: filepath.Join(dir, strconv.Itoa(n)), Source: server.URL + "/" + strconv.Itoa(n)}
		_, err := NewApplier(&fakeSystem{}, nil).file(t.Context(), &f)
		if (err != nil) != (want != "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d redirects: %v, want %q", n, err, want)
		}
		if is := show(t, f.Path); (is == "-rw-r--r-- content") != (want == "") {
			t.Errorf("%d redirects: the file is %q", n, is)
		}
	}
	away := bundle.MachineFile{Path: filepath.Join(dir, "away"), Source: server.URL + "/away"}
	if _, err := NewApplier(&fakeSystem{}, nil).file(t.Context(), &away); err == nil ||
		!strings.HasSuffix(err.Error(), "redirected to a URL without https") {
		t.Errorf("redirected to another machine: %v", err)
	}
	_, bound := testpeer.BoundSocket(t)
	f := bundle.MachineFile{Path: filepath.Join(dir, "refused"), Source: fmt.Sprintf("http://127.0.0.1:%d/0?token=secret", bound)}
	if _, err := NewApplier(&fakeSystem{}, nil).file(t.Context(), &f); err == nil ||
		!strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "secret") {
		t.Errorf("no server: %v", err)
	}
}
