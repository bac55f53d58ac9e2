package console

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/api"
	"tendril/internal/console/tokens"
)

func create(t *testing.T, dir, name string, expires time.Time, scopes ...string) string {
	t.Helper()
	secret, err := tokens.Create(dir, tokens.Token{Name: name, Scopes: scopes, Expires: expires}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func statusWith(t *testing.T, s *Server, secret string) int {
	t.Helper()
	code, _ := exchange(t, s, with(get("/api/v1/environment"), "Authorization", "Bearer "+secret))
	return code
}

func TestTokensAreStoredHashed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := create(t, dir, "ci", time.Time{}, api.ScopeRead)
	if raw := strings.TrimPrefix(secret, "tendril_"); len(raw) != 64 {
		t.Errorf("%q is not 256 bits", secret)
	}
	s := New(&Options{Token: testToken, Access: Access{TokenDir: dir}})
	if code := statusWith(t, s, secret); code != 409 {
		t.Fatalf("the token answered %d", code)
	}
	for _, file := range []string{tokens.Filename, tokens.UsedFilename} {
		path := filepath.Join(dir, file)
		text, err := os.ReadFile(path)
		info, err2 := os.Stat(path)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(strings.TrimPrefix(secret, "tendril_"))) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o and the text\n%s", file, info.Mode().Perm(), text)
		}
	}
	for _, wrong := range []string{secret + "0", secret[:len(secret)-1], "tendril_", "", strings.ToUpper(secret)} {
		if code := statusWith(t, s, wrong); code != 401 {
			t.Errorf("%q answered %d", wrong, code)
		}
	}
}

func TestTokenFileIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bytes.Buffer
	s := New(&Options{Token: testToken, Access: Access{TokenDir: dir}, Logger: textLogger(&log)})
	first := create(t, dir, "first", time.Time{}, api.ScopeRead)
	if code := statusWith(t, s, first); code != 409 {
		t.Errorf("a new token answered %d", code)
	}
	second := create(t, dir, "second", time.Time{}, api.ScopeAct)
	if code := statusWith(t, s, second); code != 403 {
		t.Errorf("a token without the scope answered %d", code)
	}
	if err := tokens.Revoke(dir, "first"); err != nil {
		t.Fatal(err)
	}
	if code := statusWith(t, s, first); code != 401 {
		t.Errorf("a revoked token answered %d", code)
	}
	path := filepath.Join(dir, tokens.Filename)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if code := statusWith(t, s, second); code != 401 || !strings.Contains(log.String(), "chmod 600") {
		t.Errorf("a file that others may read lets in: %d\n%s", code, &log)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if code := statusWith(t, s, second); code != 401 {
		t.Errorf("a file that is gone lets in: %d", code)
	}
}

func TestTokensAreAcceptedAgainOnceTheirFileIsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bytes.Buffer
	s := New(&Options{Token: testToken, Access: Access{TokenDir: dir}, Logger: textLogger(&log)})
	secret := create(t, dir, "ci", time.Time{}, api.ScopeRead)
	for _, c := range []struct {
		mode os.FileMode
		code int
	}{{0o600, 409}, {0o644, 401}, {0o644, 401}, {0o600, 409}} {
		if err := os.Chmod(filepath.Join(dir, tokens.Filename), c.mode); err != nil {
			t.Fatal(err)
		}
		if code := statusWith(t, s, secret); code != c.code {
			t.Errorf("with mode %o the token answered %d, want %d", c.mode, code, c.code)
		}
	}
	if n := strings.Count(log.String(), "tokens not accepted"); n != 1 {
		t.Errorf("reported %d times:\n%s", n, &log)
	}
}

func TestTokenExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := New(&Options{Token: testToken, Access: Access{TokenDir: dir}})
		secret := create(t, dir, "ci", time.Now().Add(time.Hour), api.ScopeRead)
		time.Sleep(time.Hour - time.Second)
		if code := statusWith(t, s, secret); code != 409 {
			t.Errorf("before it expires it answers %d", code)
		}
		used := time.Now()
		time.Sleep(time.Second)
		if code := statusWith(t, s, secret); code != 401 {
			t.Errorf("an expired token answers %d", code)
		}
		tokens, err := tokens.List(dir)
		if err != nil || len(tokens) != 1 || !tokens[0].LastUsed.Equal(used) {
			t.Errorf("%v %v, used at %s", tokens, err, used)
		}
	})
}

func TestDamagedTokenFileIsNotOverwritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, tokens.Filename)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := tokens.Create(dir, tokens.Token{Name: "a", Scopes: api.Scopes()}, time.Now())
	if err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("created with %v", err)
	}
	if err := tokens.Revoke(dir, "a"); err == nil {
		t.Error("revoked")
	}
	if _, err := tokens.List(dir); err == nil {
		t.Error("listed")
	}
}
