package config

import (
	"path/filepath"
	"testing"
)

func TestDaemonFileHintsAreBareSeconds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(write(t, "aws-sqsd.d/default.yaml", "visibility_timeout: 50000\n"), "aws-sqsd.d", "default.yaml")
	_, err := Load(Sources{Environ: home(), Dir: t.TempDir(), Flags: map[string]string{"config": path}})
	want := path + ":1: visibility_timeout 50000 is out of range; allowed: 0 to 43200 seconds\n" +
		"  write visibility_timeout: 43200"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
