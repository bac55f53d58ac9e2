package tasks

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTokenIsSharedByTheEndpoint(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	token, err := Token(dir)
	if err != nil || len(token) < 32 {
		t.Fatalf("token of %d characters, %v", len(token), err)
	}
	if again, err := Token(dir); again != token || err != nil {
		t.Errorf("after a restart it is another one, %v", err)
	}
	path, err := ShareToken(state, "http://127.0.0.1:9324", token)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, filepath.Join(dir, TokenFile)} {
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
		}
	}
	for url, want := range map[string]string{
		"http://127.0.0.1:9324/000000000000/jobs": token,
		"http://localhost:9324/000000000000/jobs": token,
		"http://127.0.0.1:9325/000000000000/jobs": "",
		"":       "",
		"http:/": "",
	} {
		if got := SharedToken(state, url); got != want {
			t.Errorf("for %q there is a token: %t", url, got != "")
		}
	}
	if SharedToken("", "http://127.0.0.1:9324") != "" {
		t.Error("without a state folder there is a token")
	}
}
