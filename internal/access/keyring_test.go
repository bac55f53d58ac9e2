package access

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var created = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func TestCreateListAndRevoke(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "credentials.json")
	web, err := Create(path, KeyPair{Name: "web", Allow: AllowSend, Queues: []string{"jobs"}}, created)
	if err != nil {
		t.Fatal(err)
	}
	job, err := Create(path, KeyPair{Name: "job", Allow: AllowAll, Expires: created.Add(time.Hour)}, created)
	if err != nil {
		t.Fatal(err)
	}
	if len(web.AccessKeyID) != 20 || len(web.SecretAccessKey) != 40 || web.SessionToken != "" || job.SessionToken == "" {
		t.Errorf("unexpected keys: %s %d %d", web.AccessKeyID, len(web.SecretAccessKey), len(job.SessionToken))
	}
	if _, err := Create(path, KeyPair{Name: "web", Allow: AllowAll}, created); err == nil ||
		!strings.Contains(err.Error(), "duplicate") {
		t.Errorf("a name twice: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	pairs, err := ReadFile(path)
	if err != nil || len(pairs) != 2 || !slices.Equal(pairs[0].Queues, web.Queues) || pairs[1].Name != "job" ||
		!pairs[1].Expires.Equal(job.Expires) || pairs[0].SecretAccessKey != web.SecretAccessKey {
		t.Errorf("read back: %+v, %v", pairs, err)
	}
	if err := Revoke(path, web.AccessKeyID); err != nil {
		t.Error(err)
	}
	if err := Revoke(path, "web"); err == nil || !strings.Contains(err.Error(), "credential web not found") {
		t.Errorf("revoked twice: %v", err)
	}
	if pairs, err = ReadFile(path); err != nil || len(pairs) != 1 {
		t.Errorf("after: %+v, %v", pairs, err)
	}
	if printed := fmt.Sprintf("%v %+v %#v", job, job, job); strings.Contains(printed, string(job.SecretAccessKey)) ||
		strings.Contains(printed, string(job.SessionToken)) {
		t.Error("a secret is printed")
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	const good = `{"name":"a","access_key_id":"A","secret_access_key":"0123456789abcdef","allow":"all","created":"2026-11-23T12:00:00Z"}`
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"readable by others": {`{"credentials":[` + good + `]}`, 0o640, "chmod 600"},
		"not JSON":           {"{\n\"credentials\": [\n}", 0o600, "line 3"},
		"an unknown field":   {`{"credentials":[{"nmae":"a"}]}`, 0o600, "nmae"},
		"another type":       {`{"credentials":[{"secret_access_key":{"hunter2":1}}]}`, 0o600, "must not be a JSON object"},
		"a short secret":     {strings.Replace(`{"credentials":[`+good+`]}`, "0123456789abcdef", "hunter2", 1), 0o600, "shorter than 16"},
		"an invalid key ID":  {strings.Replace(`{"credentials":[`+good+`]}`, `"A"`, `"A B"`, 1), 0o600, `digits, "_", "-" and "."`},
		"an unknown right":   {strings.Replace(`{"credentials":[`+good+`]}`, `"all"`, `"some"`, 1), 0o600, `use "all" or "send"`},
		"a name twice":       {`{"credentials":[` + good + "," + good + `]}`, 0o600, "duplicate"},
	} {
		path := filepath.Join(t.TempDir(), "credentials.json")
		if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		_, err := ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "absent")); !os.IsNotExist(err) && err == nil {
		t.Error("a file that is missing is read")
	}
}

func TestKeyringReadsAFileOnceItIsPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "credentials.json")
	if _, err := Create(path, KeyPair{Name: "web", Allow: AllowAll}, created); err != nil {
		t.Fatal(err)
	}
	rejected := 0
	ring, err := Open(path, func(error) { rejected++ })
	if err != nil {
		t.Fatal(err)
	}
	now := created
	ring.now = func() time.Time { return now }
	job, err := Create(path, KeyPair{Name: "job", Allow: AllowAll}, created)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o644, 0o644, 0o600} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		now = now.Add(recheckInterval)
		if _, known := ring.lookUp(job.AccessKeyID); known != (mode == 0o600) {
			t.Errorf("with mode %o the new key pair is known: %t", mode, known)
		}
	}
	if rejected != 1 {
		t.Errorf("rejected %d times", rejected)
	}
}

// A broken file must not change the key pairs.
func TestKeyringFollowsItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "credentials.json")
	web, err := Create(path, KeyPair{Name: "web", Allow: AllowAll}, created)
	if err != nil {
		t.Fatal(err)
	}
	var rejected []error
	ring, err := Open(path, func(err error) { rejected = append(rejected, err) })
	if err != nil {
		t.Fatal(err)
	}
	now := created
	ring.now = func() time.Time { return now }
	accepted := func(p KeyPair) bool {
		now = now.Add(recheckInterval)
		r := parseRequest(t, "POST / HTTP/1.1\nHost: localhost:9324", "")
		sign(r, "", p, now)
		_, err := ring.Verify(r, nil)
		return err == nil
	}
	if !accepted(web) {
		t.Fatal("the pair is refused")
	}
	job, err := Create(path, KeyPair{Name: "job", Allow: AllowAll}, created)
	if err != nil || !accepted(job) {
		t.Errorf("a new pair is refused: %v", err)
	}
	if err := Revoke(path, "web"); err != nil || accepted(web) || !accepted(job) {
		t.Errorf("a revoked pair is accepted, or the other refused: %v", err)
	}
	if err := os.WriteFile(path, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second check finds the file unchanged
		if !accepted(job) {
			t.Error("a broken file takes a pair away")
		}
	}
	if len(rejected) != 1 {
		t.Errorf("a broken file: rejected %v", rejected)
	}
	if text, err := json.Marshal(KeyPair{}); err != nil || strings.Contains(string(text), "expires") {
		t.Errorf("%s, %v", text, err)
	}
}
