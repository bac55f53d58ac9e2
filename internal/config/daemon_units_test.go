package config

import (
	"path/filepath"
	"testing"
)

func TestDaemonKeysBelowSqsdAreUnknown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(write(t, "aws-sqsd.d/default.yaml", "sqsd:\n  http_url: http://other\n  debug: true\n"+
		"http_url: http://app\n"), "aws-sqsd.d", "default.yaml")
	cfg, err := Load(Sources{Environ: home(), Dir: t.TempDir(), Flags: map[string]string{"config": path}})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Target != "http://app:80" || cfg.Verbose {
		t.Errorf("target %s, verbose %t", cfg.Target, cfg.Verbose)
	}
	if len(cfg.Warnings) < 2 || cfg.Warnings[0].Text != "unknown key http_url; it has no effect" ||
		cfg.Warnings[1].Text != "unknown key debug; it has no effect" {
		t.Errorf("warnings %v", cfg.Warnings)
	}
}

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
